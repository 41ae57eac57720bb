//! Files that the tour reads, good and bad.

use crate::random::Random;
use crate::read::{self, Cloud};
use crate::scan::scan;
use las::point::Format;
use las::{Builder, Point, Transform, Vector, Writer};
use pullback::ndarray::{Array2, array};
use std::io::Cursor;
use std::path::{Path, PathBuf};

fn text(content: &str) -> Result<Cloud, String> {
    parse("csv", content)
}

fn parse(extension: &str, bytes: impl Into<Vec<u8>>) -> Result<Cloud, String> {
    read::parse(extension, bytes.into()).map_err(|error| error.to_string())
}

fn refusal(result: Result<Cloud, String>) -> String {
    result.expect_err("the file should be refused")
}

/// A real file, unless it is not there and need not be.
fn data(name: &str) -> Option<PathBuf> {
    let directory = std::env::var_os("PULLBACK_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from);
    let path = directory.join(name);
    if path.exists() {
        return Some(path);
    }
    let required = std::env::var_os("PULLBACK_REQUIRE_DATA").is_some_and(|value| value == "1");
    assert!(!required, "{} is not there", path.display());
    eprintln!("skipped: {} is not there", path.display());
    None
}

#[test]
fn text_is_read_in_every_usual_form() {
    let expected = array![[1.0, -2.5, 3e4], [0.5, 0.0, -1.0]];
    for content in [
        "1,-2.5,3e4\n0.5,0,-1\n",
        "x,y,z\n1,-2.5,3e4\n0.5,0,-1",
        "x , y , z , nx\n1 , -2.5 , 3e4 , 9\n.5 , 0. , -1 , 9\n",
        "x y z\n1 -2.5 3e4\n0.5 0 -1\n",
        "1\t-2.5\t 3e4\r\n\r\n  0.5   0  -1  red\r\n",
        "\u{feff}# a comment, 1 2 3\n\"x\",\"y\",\"z\"\n+1,-2.5,30000,\n\n# another\n0.5,0,-1,\n",
        "kind,x,y,z\ncar,1,-2.5,3e4\ntree,0.5,0,-1\n",
    ] {
        let cloud = text(content).unwrap_or_else(|error| panic!("{content:?}: {error}"));
        assert_eq!((cloud.points, cloud.dropped), (expected.clone(), 0), "{content:?}");
    }
}

#[test]
fn rows_that_are_not_finite_are_dropped_and_counted() {
    let cloud = text("x,y,z\n1,2,3\nnan,2,3\n1,-inf,3\n1,2,1e999\n4,5,6\n1,2,NaN\n").unwrap();
    assert_eq!((cloud.points, cloud.dropped), (array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], 4));
    assert_eq!(refusal(text("NaN NaN NaN\ninf 0 0\n")), "no points: every row has a NaN or an infinity, rows read: 2");
}

#[test]
fn bad_text_is_refused_by_line() {
    for (content, expected) in [
        ("", "the file is empty"),
        ("\n\n", "no points"),
        ("x,y,z\n", "no points"),
        ("1,2\n", "line 1: x, y and z need 3 columns, found 2"),
        ("x,y,z\n1,2,3\n\n4 5\n", "line 4: x, y and z need 3 columns, found 2"),
        ("x,y,z\n1,2,3\n4,5\n", "line 3: x, y and z need 3 columns, found 2"),
        ("x y z\n1 2 3\n4 5 six\n", "line 3, column 3: \"six\" is not a number"),
        ("1,2,3\n1,,3\n", "line 2, column 2: \"\" is not a number"),
        ("1,two,3\n", "line 1, column 2: \"two\" is not a number"),
        ("x,y,z\nNA,2,3\n4,5,6\n", "line 2, column 1: \"NA\" is not a number"),
        ("x,y,z\n# note\nx,y,z\n", "line 3, column 1: \"x\" is not a number"),
        ("1.5;2;3\n1;2;3\n", "line 2, column 1: \"1;2;3\" is not a number"),
        ("car 1 2 3\ntree 1 2\n", "line 2: x, y and z need 4 columns, found 3"),
        ("bad,2,3,4\n1,2,3,4\n", "line 2, column 1: \"1\" is a number, the lines above have labels there"),
    ] {
        assert_eq!(refusal(text(content)), expected, "{content:?}");
    }
    let mut binary = b"x y z\n".to_vec();
    binary.extend([0xff; 100]);
    let error = refusal(parse("xyz", binary));
    assert!(error.starts_with("line 2, column 1: ") && error.len() < 200, "{error}");
}

/// A `.npy` file, version 1, with `shape` as it is written in the header.
fn npy(kind: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': ({shape}), }}");
    let header = format!("{header:117}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
}

fn bytes<const N: usize>(values: [f64; 6], number: impl Fn(f64) -> [u8; N]) -> Vec<u8> {
    values.into_iter().flat_map(number).collect()
}

#[test]
fn arrays_are_read_in_every_type_and_order() {
    let expected = array![[1.0, -2.5, 3e4], [0.5, 0.0, -1.0]];
    let (rows, columns) = ([1.0, -2.5, 3e4, 0.5, 0.0, -1.0], [1.0, 0.5, -2.5, 0.0, 3e4, -1.0]);
    for array in [
        npy("<f8", false, "2, 3", &bytes(rows, f64::to_le_bytes)),
        npy(">f8", false, "2, 3", &bytes(rows, f64::to_be_bytes)),
        npy("<f4", false, "2, 3", &bytes(rows, |x| (x as f32).to_le_bytes())),
        npy(">f4", false, "2, 3", &bytes(rows, |x| (x as f32).to_be_bytes())),
        npy("<f8", true, "2, 3", &bytes(columns, f64::to_le_bytes)),
    ] {
        let cloud = parse("npy", array).unwrap();
        assert_eq!((cloud.points, cloud.dropped), (expected.clone(), 0));
    }
    let nan = npy("<f8", false, "2, 3", &bytes([1.0, 2.0, 3.0, 4.0, f64::NAN, 6.0], f64::to_le_bytes));
    let cloud = parse("npy", nan).unwrap();
    assert_eq!((cloud.points, cloud.dropped), (array![[1.0, 2.0, 3.0]], 1));
}

#[test]
fn bad_arrays_are_refused() {
    let data = bytes([1.0; 6], f64::to_le_bytes);
    for (array, expected) in [
        (npy("<f8", false, "2, 3", &data[..47]), "record 2 of 2: the file ends, 5 of 6 numbers are there"),
        (npy("<f8", false, "2, 3", &data[..20]), "record 1 of 2: the file ends, 2 of 6 numbers are there"),
        (
            npy("<f8", false, "18446744073709551615, 3", &data),
            "record 3 of 18446744073709551615: the file ends, 6 of 55340232221128654845 numbers are there",
        ),
        (npy("<f8", false, "3, 2", &data), "not a .npy file of points: its shape is (3, 2), not (N, 3)"),
        (npy("<f8", false, "6,", &data), "not a .npy file of points: its shape is (6,), not (N, 3)"),
        (npy("<f8", false, "1, 2, 3", &data), "not a .npy file of points: its shape is (1, 2, 3), not (N, 3)"),
        (npy("<i8", false, "2, 3", &data), "not a .npy file of points: its elements are \"<i8\", not f32 or f64"),
        (npy("<f8", false, "0, 3", &[]), "no points"),
        (b"PK\x03\x04 an archive".to_vec(), "not a .npy file of points: it has no header"),
    ] {
        assert_eq!(refusal(parse("npy", array)), expected);
    }
    let whole = npy("<f8", false, "2, 3", &data);
    for length in 0..whole.len() {
        refusal(parse("npy", &whole[..length]));
    }
}

/// A LAS file of `points` in a point format, in steps of a thousandth.
fn las(points: &Array2<f64>, format: u8, compressed: bool) -> Vec<u8> {
    let mut builder = Builder::from((1, 4));
    builder.point_format = Format::new(format).unwrap();
    builder.point_format.is_compressed = compressed;
    let transform = Transform { scale: 0.001, offset: 0.0 };
    builder.transforms = Vector { x: transform, y: transform, z: transform };
    let mut writer = Writer::new(Cursor::new(Vec::new()), builder.into_header().unwrap()).unwrap();
    for row in points.outer_iter() {
        let point = Point { x: row[0], y: row[1], z: row[2], gps_time: Some(0.0), ..Point::default() };
        writer.write_point(point).unwrap();
    }
    writer.into_inner().unwrap().into_inner()
}

#[test]
fn las_and_laz_are_read() {
    let points = scan(500, 3);
    for (extension, format, compressed) in
        [("las", 1, false), ("las", 6, false), ("laz", 1, true), ("laz", 6, true), ("las", 6, true)]
    {
        let cloud = parse(extension, las(&points, format, compressed)).unwrap();
        assert_eq!((cloud.points.dim(), cloud.dropped), ((500, 3), 0));
        for (a, b) in cloud.points.iter().zip(&points) {
            assert!((a - b).abs() <= 0.000_51, "{a} is not {b}");
        }
    }
}

#[test]
fn truncated_las_and_laz_are_refused() {
    let points = scan(40, 3);
    let whole = las(&points, 6, false);
    let record = 30;
    let last = whole.len() - 7;
    assert_eq!(refusal(parse("las", &whole[..last])), "record 40 of 40: the file ends too early");
    assert_eq!(refusal(parse("las", &whole[..whole.len() - 12 * record])), "record 29 of 40: the file ends too early");
    assert_eq!(refusal(parse("las", &whole[..100])), "not a readable LAS file: the file ends too early");
    assert!(refusal(parse("las", "x,y,z\n1,2,3\n")).starts_with("not a readable LAS file: "));
    assert_eq!(refusal(parse("las", las(&Array2::zeros((0, 3)), 6, false))), "no points");
    for (format, compressed) in [(1, false), (6, false), (1, true), (6, true)] {
        let whole = las(&points, format, compressed);
        for length in 0..whole.len() {
            refusal(parse("laz", &whole[..length]));
        }
    }
}

#[test]
fn damaged_las_and_laz_never_panic() {
    let points = scan(200, 3);
    let mut random = Random::new(4);
    // Compressed points of format 6 are left out: the decoder allocates gigabytes that damaged sizes promise.
    for (format, compressed) in [(1, false), (6, false), (1, true)] {
        let whole = las(&points, format, compressed);
        for round in 0..2000 {
            let mut damaged = whole.clone();
            // Half of the damage in the header.
            let limit = if round % 2 == 0 { 400 } else { whole.len() };
            for _ in 0..3 {
                damaged[(random.unit() * limit as f64) as usize] = (256.0 * random.unit()) as u8;
            }
            let _ = parse("laz", damaged);
        }
    }
}

#[test]
fn files_are_told_apart_by_extension() {
    for (name, expected) in [
        ("cloud.ply", "unknown extension \"ply\": .csv, .xyz, .txt, .npy, .las and .laz can be read"),
        ("cloud", "unknown extension \"\": .csv, .xyz, .txt, .npy, .las and .laz can be read"),
    ] {
        assert_eq!(read::file(Path::new(name)).unwrap_err().to_string(), expected);
    }
    let error = read::file(Path::new("there/is/none.CSV")).unwrap_err();
    assert!(matches!(error, read::Error::Io(_)), "{error}");
}

#[test]
fn real_files_are_read() {
    if let Some(path) = data("car_cloud400.csv") {
        let Cloud { points, dropped } = read::file(&path).unwrap();
        assert_eq!((points.dim(), dropped), ((24_989, 3), 0));
        assert_eq!(points.row(0), array![-3.5376, 0.639553, -1.37678]);
        assert_eq!(points.row(24_988), array![-0.0559087, 1.29374, 6.64353]);
    }
    if let Some(path) = data("autzen-thin.las") {
        let Cloud { points, dropped } = read::file(&path).unwrap();
        assert_eq!((points.dim(), dropped), ((10_653, 3), 0));
        for (column, middle) in points.columns().into_iter().zip([637_000.0, 851_000.0, 500.0]) {
            assert!(column.iter().all(|x| (x - middle).abs() < 3000.0), "{column}");
        }
        // Steps of a hundredth survive in f64.
        assert!(points.iter().all(|x| (100.0 * x - (100.0 * x).round()).abs() < 1e-6));
        let whole = std::fs::read(&path).unwrap();
        let error = refusal(parse("las", &whole[..whole.len() / 2]));
        assert!(error.ends_with(" of 10653: the file ends too early"), "{error}");
    }
    if let Some(path) = data("kernels_12.npy") {
        let error = read::file(&path).unwrap_err().to_string();
        assert_eq!(error, "not a .npy file of points: its shape is (12, 25, 25), not (N, 3)");
    }
}
