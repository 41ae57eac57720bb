//! The main job: a cloud of points through all five families, forward and backward, every result checked.
//! `cargo run --release --example tour -- --help` says what it reads and writes.
//!
//! `scan` and `read` bring the points, `chapters` tells the story. A chapter is a file: `neighbours` (with `features` and `smooth`),
//! `interpolated`, `occupied`, `blurred`, `series` (with `rotation`). `check` says whether results are right, `table` prints,
//! `pictures` draws.

mod arguments;
mod blurred;
mod chapters;
mod check;
mod features;
mod frame;
mod interpolated;
mod neighbours;
mod occupied;
#[allow(dead_code, reason = "nothing is read or made up here")]
mod picture;
mod pictures;
mod random;
mod read;
mod rotation;
mod scan;
mod series;
mod smooth;
mod table;

use arguments::{Arguments, Source};
use chapters::{SEED, Story, chapters};
use pictures::Pictures;
use pullback::Level;
use pullback::ndarray::Array2;
use read::Cloud;
use std::error::Error;
use std::io::{ErrorKind, Write as _};
use std::panic;
use std::path::Path;
use std::process::ExitCode;
use table::Table;

/// How to read the table.
const NOTES: &str = "\
level:     of a step of the library, which may use the threads named; the other steps are plain loops of this example.
identity:  <forward(x), y> = <x, adjoint(y)> for random y. The error is relative to the sum of the absolute products: both
           sides round, by about 1e-16 each, while a single wrong row of a million would show as about 1e-6.
gradient:  <gradient, v> by differences of the loss along random v. To at most 1e-12 where the loss is quadratic, so that the
           quotient is exact but for rounding; elsewhere the differences are of the fourth order.
moved and stretched: heights do not change where cells and points move together, or away from the origin in proportion: their
           gradients, summed one way and the other, are 0.
";

fn main() -> ExitCode {
    let (text, status) = match arguments::parse(std::env::args_os().skip(1)) {
        Ok(None) => (arguments::USAGE.into(), 0),
        Ok(Some(arguments)) => match tour(arguments) {
            Ok((text, true)) => (text, 0),
            Ok((text, false)) => (text, 1),
            Err(error) => return refuse(&error.to_string()),
        },
        Err(error) => return refuse(&format!("{error} (--help shows the usage)")),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => refuse(&format!("standard output: {error}")),
        _ => ExitCode::from(status),
    }
}

fn refuse(error: &str) -> ExitCode {
    // Where standard error is closed there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "tour: {error}");
    ExitCode::from(2)
}

/// The whole tour as text, and whether every check passed.
fn tour(Arguments { source, pictures }: Arguments) -> Result<(String, bool), Box<dyn Error>> {
    let mut story = Story { table: Table::default(), pictures: Pictures::new(pictures)? };
    let (points, title) = match source {
        Source::Scan(count) => scanned(count, &mut story.table),
        Source::File(path) => read(&path, &mut story.table).map_err(|error| format!("{}: {error}", path.display()))?,
    };
    let summary = chapters(&points, &mut story)?;
    let Story { table, .. } = story;
    let (checks, failed) = table.counts();
    let verdict = match failed {
        0 => format!("all {checks} checks passed"),
        failed => format!("{failed} of {checks} checks FAILED"),
    };
    Ok((format!("{title}\n\n{table}\n{summary}\n\n{NOTES}\n{verdict}\n"), failed == 0))
}

/// The made-up points (N, 3), and what they are.
fn scanned(count: usize, table: &mut Table) -> (Array2<f64>, String) {
    let points = table.run("scan", format!("({count}, 3)"), Level::current().ok(), || scan::scan(count, SEED));
    (points, format!("{count} points: a scan of a made-up street, in metres"))
}

/// The points (N, 3) of a file, and what they are.
fn read(path: &Path, table: &mut Table) -> Result<(Array2<f64>, String), read::Error> {
    // A decoder that panics on a damaged file is caught; what it says of itself helps nobody.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let cloud = table.run("read", String::new(), None, || read::file(path));
    panic::set_hook(hook);
    let Cloud { points, dropped } = cloud?;
    let count = points.nrows();
    table.shapes(format!("({count}, 3)"));
    let title = match dropped {
        0 => format!("{count} points of {}", path.display()),
        _ => format!("{count} points of {}; {dropped} rows with a NaN or an infinity left out", path.display()),
    };
    Ok((points, title))
}
