//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

/// What `--help` prints.
pub const USAGE: &str = "\
Takes a cloud of points through all five families of the library, forward and backward, and checks every result: neighbours and
features gathered from them, heights interpolated to a grid, an occupancy grid and what a camera sees of it, that picture out of
focus by a kernel a pixel, and a rotating frame by Taylor series.

usage: cargo run --release --example tour -- [OPTIONS] [FILE]

  FILE            a cloud of points: .csv, .xyz or .txt (columns between commas or spaces, x y z first, a header may
                  stand above), .npy ((N, 3) of f32 or f64), .las or .laz; without it, a scan of a made-up street
  --points N      points of the made-up scan, 1 to 10000000 (default 100000)
  --pictures DIR  writes field.png, depth.png, levels.png, kernels.png, blurred.png and taylor.svg into DIR
  -h, --help      this text

PULLBACK_SIMD=base|v3|v4 lowers the level of instructions, RAYON_NUM_THREADS=N sets the number of threads.
Exit status: 0 where every check passed, 1 where one failed, 2 where there was nothing to check.
";

/// Where the points come from.
#[derive(Debug, PartialEq)]
pub enum Source {
    /// A made-up scan of so many points.
    Scan(usize),
    File(PathBuf),
}

/// What is asked for.
#[derive(Debug, PartialEq)]
pub struct Arguments {
    pub source: Source,
    /// The directory that pictures go to.
    pub pictures: Option<PathBuf>,
}

/// Reads the arguments behind the program's name: nothing where they ask for the usage.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Arguments>, String> {
    let (mut file, mut points, mut pictures) = (None, None, None);
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("-h" | "--help") => return Ok(None),
            Some("--points") => {
                let value = arguments.next().ok_or("--points needs a number")?;
                let number = value.to_str().and_then(|value| value.parse().ok());
                let number = number.filter(|n| (1..=10_000_000).contains(n));
                points = Some(number.ok_or_else(|| format!("--points {value:?}: expected 1 to 10000000"))?);
            }
            Some("--pictures") => {
                pictures = Some(arguments.next().ok_or("--pictures needs the name of a directory")?.into());
            }
            Some(flag) if flag.starts_with('-') => return Err(format!("unknown option {flag:?}")),
            _ if file.is_some() => return Err(format!("one file at a time: {argument:?} is the second")),
            _ => file = Some(PathBuf::from(argument)),
        }
    }
    let source = match (file, points) {
        (Some(_), Some(_)) => return Err("--points is for the made-up scan, not for a file".into()),
        (Some(file), None) => Source::File(file),
        (None, points) => Source::Scan(points.unwrap_or(100_000)),
    };
    Ok(Some(Arguments { source, pictures }))
}
