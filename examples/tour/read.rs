//! Point clouds from files: text, `.npy`, LAS and LAZ.

use las::{PointDataBuilder, Reader};
use pullback::ndarray::Array2;
use std::io::Cursor;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// What a file holds.
#[derive(Debug)]
pub struct Cloud {
    /// The finite points, (N, 3) with N at least 1.
    pub points: Array2<f64>,
    /// Rows left out because a coordinate is NaN or infinite.
    pub dropped: usize,
}

/// Why a file cannot be read. Lines, columns and records count from 1.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("unknown extension {0:?}: .csv, .xyz, .txt, .npy, .las and .laz can be read")]
    Extension(String),
    #[error("the file is empty")]
    Empty,
    #[error("no points")]
    NoPoints,
    #[error("no points: every row has a NaN or an infinity, rows read: {0}")]
    NoFinitePoints(usize),
    #[error("line {line}: x, y and z need {needed} columns, found {found}")]
    Columns { line: usize, needed: usize, found: usize },
    #[error("line {line}, column {column}: {text:?} is not a number")]
    Number { line: usize, column: usize, text: String },
    #[error("line {line}, column {column}: {text:?} is a number, the lines above have labels there")]
    Label { line: usize, column: usize, text: String },
    #[error("not a .npy file of points: {0}")]
    Npy(String),
    #[error("not a readable LAS file: {0}")]
    Las(String),
    #[error("record {record} of {records}: {reason}")]
    Record { record: u64, records: u64, reason: String },
}

/// Reads the file at `path`; its extension says how.
pub fn file(path: &Path) -> Result<Cloud, Error> {
    let extension = extension(path)?;
    parse(&extension, std::fs::read(path)?)
}

/// Reads the `bytes` of a file whose name ends in `extension`, one of those that [`extension`] returns.
pub fn parse(extension: &str, bytes: Vec<u8>) -> Result<Cloud, Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    let rows = match extension {
        "npy" => npy(&bytes)?,
        "las" | "laz" => las(bytes)?,
        _ => text(&bytes)?,
    };
    let points: Vec<_> = rows.iter().copied().filter(|row| row.iter().all(|x| x.is_finite())).collect();
    match (points.len(), rows.len()) {
        (0, 0) => Err(Error::NoPoints),
        (0, rows) => Err(Error::NoFinitePoints(rows)),
        (finite, rows) => Ok(Cloud { points: Array2::from(points), dropped: rows - finite }),
    }
}

/// The extension of a file that can be read, in lower case.
fn extension(path: &Path) -> Result<String, Error> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    if ["csv", "xyz", "txt", "npy", "las", "laz"].contains(&extension.as_str()) {
        Ok(extension)
    } else {
        Err(Error::Extension(extension))
    }
}

/// Lines of columns between commas or spaces. The coordinates are the first three columns of numbers, so labels may
/// stand before them. Empty lines and those that start with # are skipped, and so is a first line without any number.
fn text(bytes: &[u8]) -> Result<Vec<[f64; 3]>, Error> {
    let text = String::from_utf8_lossy(bytes);
    let mut rows = Vec::new();
    let mut first_line = true;
    let mut labels = None;
    for (line, content) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let content = content.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = if content.contains(',') {
            content.split(',').map(str::trim).collect()
        } else {
            content.split_whitespace().collect()
        };
        let first_number = fields.iter().position(|field| field.parse::<f64>().is_ok());
        if std::mem::take(&mut first_line) && first_number.is_none() {
            continue;
        }
        // Once a row has shown how many labels there are, a number among them means that this row was damaged.
        let labels = *labels.get_or_insert(first_number.filter(|labels| labels + 3 <= fields.len()).unwrap_or(0));
        if let Some(column) = first_number.filter(|&column| column < labels) {
            return Err(Error::Label { line, column: column + 1, text: shortened(fields[column]) });
        }
        let mut row = [0.0; 3];
        for (column, value) in (labels..).zip(&mut row) {
            let columns = Error::Columns { line, needed: labels + 3, found: fields.len() };
            let field = fields.get(column).ok_or(columns)?;
            *value = field.parse().map_err(|_| Error::Number { line, column: column + 1, text: shortened(field) })?;
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Enough of a field to find it by.
fn shortened(field: &str) -> String {
    field.chars().take(40).collect()
}

/// An array (N, 3) of f32 or f64 in either byte and axis order, as numpy.lib.format describes it.
fn npy(bytes: &[u8]) -> Result<Vec<[f64; 3]>, Error> {
    let (header, data) = npy_header(bytes).ok_or_else(|| Error::Npy("it has no header".into()))?;
    let value = |key: &str| header.split_once(&format!("'{key}':")).map_or("", |(_, value)| value.trim_start());
    let list = |key: &str, [open, close]: [char; 2]| {
        value(key).strip_prefix(open).and_then(|rest| rest.split_once(close)).map_or("", |(list, _)| list)
    };
    let kind = list("descr", ['\'', '\'']);
    let (width, number): (usize, fn(&[u8]) -> f64) = match kind {
        "<f4" => (4, |x| f32::from_le_bytes(x.try_into().expect("4 bytes")).into()),
        ">f4" => (4, |x| f32::from_be_bytes(x.try_into().expect("4 bytes")).into()),
        "<f8" => (8, |x| f64::from_le_bytes(x.try_into().expect("8 bytes"))),
        ">f8" => (8, |x| f64::from_be_bytes(x.try_into().expect("8 bytes"))),
        _ => return Err(Error::Npy(format!("its elements are {kind:?}, not f32 or f64"))),
    };
    let shape = list("shape", ['(', ')']);
    let Some((records, "3")) = shape.split_once(", ").and_then(|(n, c)| Some((n.parse::<u64>().ok()?, c))) else {
        return Err(Error::Npy(format!("its shape is ({shape}), not (N, 3)")));
    };
    let elements: Vec<f64> = data.chunks_exact(width).map(number).collect();
    let found = elements.len() as u64;
    if found / 3 < records {
        let reason = format!("the file ends, {found} of {} numbers are there", 3 * u128::from(records));
        return Err(Error::Record { record: found / 3 + 1, records, reason });
    }
    let rows = records as usize;
    let [row, column] = if value("fortran_order").starts_with("True") { [1, rows] } else { [3, 1] };
    Ok((0..rows).map(|i| [0, 1, 2].map(|j| elements[i * row + j * column])).collect())
}

/// The text of the header and the bytes behind it.
fn npy_header(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (&[major, _], rest) = bytes.strip_prefix(b"\x93NUMPY")?.split_first_chunk()?;
    let (length, rest) = match major {
        1 => rest.split_first_chunk().map(|(&length, rest)| (u16::from_le_bytes(length).into(), rest))?,
        _ => rest.split_first_chunk().map(|(&length, rest)| (u32::from_le_bytes(length), rest))?,
    };
    let (header, data) = rest.split_at_checked(length as usize)?;
    Some((str::from_utf8(header).ok()?, data))
}

/// Point records, compressed or not, scaled and shifted as the header says.
fn las(mut bytes: Vec<u8>) -> Result<Vec<[f64; 3]>, Error> {
    let header = guarded(|| las::raw::Header::read_from(bytes.as_slice())).map_err(Error::Las)?;
    if promised_chunks(&bytes, header.offset_to_point_data as usize).is_some_and(|chunks| chunks > bytes.len()) {
        return Err(Error::Las("its table of compressed chunks is damaged".into()));
    }
    if header.evlr.is_some() {
        // The reader would allocate what these records promise, and points need none of them.
        bytes[EXTENDED_RECORDS].fill(0);
    }
    let mut reader = guarded(|| Reader::new(Cursor::new(bytes))).map_err(Error::Las)?;
    let records = reader.header().number_of_points();
    let mut rows = Vec::new();
    let mut point = PointDataBuilder::new().for_header(reader.header()).build();
    for record in 1..=records {
        // One at a time: a header may promise more points than memory holds, and the record that fails is known.
        guarded(|| reader.fill_points(1, &mut point)).map_err(|reason| Error::Record { record, records, reason })?;
        rows.extend(point.x().zip(point.y()).zip(point.z()).map(|((x, y), z)| [x, y, z]));
    }
    Ok(rows)
}

/// Where a LAS 1.4 header says where its extended variable-length records are, and how many.
const EXTENDED_RECORDS: Range<usize> = 235..247;

/// How many chunks a table of compressed chunks says it has: the decoder allocates as many before it reads on. `start` is
/// where the points are; the table's place comes first there, or last in the file where the writer could not go back.
fn promised_chunks(bytes: &[u8], start: usize) -> Option<usize> {
    let place = |at: usize| Some(i64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let behind_start = |&table: &i64| table > start as i64;
    let table = place(start).filter(behind_start).or_else(|| place(bytes.len() - 8).filter(behind_start))?;
    let count = bytes.get(usize::try_from(table).ok()?..)?.get(4..)?.first_chunk()?;
    Some(u32::from_le_bytes(*count) as usize)
}

/// Runs the LAS reader, whose decoder of compressed points panics on some damaged files, and says what went wrong.
fn guarded<T>(read: impl FnOnce() -> las::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => match error.to_string() {
            text if text.ends_with("failed to fill whole buffer") => Err("the file ends too early".into()),
            text => Err(text),
        },
        Err(_) => Err("the data are damaged".into()),
    }
}
