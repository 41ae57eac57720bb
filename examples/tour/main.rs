//! The main job: neighbours of every point of a cloud, features gathered from them and averaged, and the gradient of a
//! loss pushed back through both. `cargo run --release --example tour -- --help` says what it reads.
//!
//! `main` tells the story; `scan` and `read` bring the points, `features` and `smooth` are what is computed, `check` says
//! whether it is right, `table` prints.

mod arguments;
mod check;
mod features;
mod random;
mod read;
mod scan;
mod smooth;
mod table;

use arguments::Source;
use features::CHANNELS;
use pullback::Level;
use pullback::kdtree::KdTree;
use pullback::ndarray::Array2;
use random::Random;
use read::Cloud;
use smooth::Smooth;
use std::io::{ErrorKind, Write as _};
use std::panic;
use std::path::Path;
use std::process::ExitCode;
use table::Table;

const NEIGHBOURS: usize = 16;
const SEED: u64 = 1;

/// How to read the table.
const NOTES: &str = "\
level:     of a step of the library, which may use the threads named; the other steps are plain loops of this example.
identity:  <forward(x), y> = <x, adjoint(y)> for random y. The error is relative to the sum of the absolute products: both
           sides round, by about 1e-16 each, while a single wrong row of a million would show as about 1e-6.
gradient:  <gradient, v> = (loss(x + hv) - loss(x - hv)) / 2h for random v, h = 1/16. The error is relative to the two
           losses over 2h: the loss is quadratic, so the quotient is exact but for rounding.
";

fn main() -> ExitCode {
    let (text, status) = match arguments::parse(std::env::args_os().skip(1)) {
        Ok(None) => (arguments::USAGE.into(), 0),
        Ok(Some(source)) => match tour(&source) {
            Ok((text, true)) => (text, 0),
            Ok((text, false)) => (text, 1),
            Err(error) => return refuse(&error),
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
fn tour(source: &Source) -> Result<(String, bool), String> {
    let mut table = Table::default();
    let (points, title) = match source {
        Source::Scan(count) => scanned(*count, &mut table),
        Source::File(path) => read(path, &mut table).map_err(|error| format!("{}: {error}", path.display()))?,
    };
    let summary = gradient(&points, &mut table).map_err(|error| error.to_string())?;
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

/// What the library is for, step by step. Returns what was found.
fn gradient(points: &Array2<f64>, table: &mut Table) -> pullback::Result<String> {
    let (n, k, c) = (points.nrows(), NEIGHBOURS, CHANNELS);
    let (coordinates, pairs) = (format!("({n}, 3)"), format!("({n}, {k})"));
    let (narrow, wide) = (format!("({n}, {c})"), format!("({n}, {k}, {c})"));
    let level = Some(Level::current()?);

    let tree = table.run("k-d tree", coordinates.clone(), level, || KdTree::<f64, 3>::new(points.view()))?;
    let found = table.run("neighbours", format!("{coordinates} -> {pairs}"), level, || tree.knn_self(k))?;
    table.check(check::neighbours(points, k, found.distances.view(), found.indices.view()));

    let x = table.run("features", format!("{coordinates} -> {narrow}"), None, || features::features(points.view()));
    let smooth = table.run("gather, plan", pairs, level, || Smooth::new(found.indices.view()))?;
    let gathered = table.run("gather", format!("{narrow} -> {wide}"), level, || smooth.gather.forward(x.view()))?;
    table.check(check::gathered(x.view(), found.indices.view(), gathered.view()));
    let means = table.run("mean", format!("{wide} -> {narrow}"), None, || smooth.mean(gathered.view()));
    drop(gathered);

    // loss = |x - means|^2 / 2, so the gradient is the difference itself, once directly and once through the means.
    let (loss, difference) =
        table.run("loss", format!("{narrow} -> ()"), None, || (smooth::loss(x.view(), means.view()), &x - &means));
    let shapes = format!("{narrow} -> {wide}");
    let parts = table.run("mean, adjoint", shapes, None, || smooth.mean_adjoint(difference.view()));
    let shapes = format!("{wide} -> {narrow}");
    let through = table.run("gather, adjoint", shapes, level, || smooth.gather.adjoint(parts.view()))?;
    drop(parts);
    let mut random = Random::new(SEED);
    let y = x.mapv(|_| random.signed());
    table.check(check::identity(&x, &means, &y, &smooth.adjoint(y.view())?));

    let gradient = table.run("gradient", narrow, None, || &difference - &through);
    table.check(check::gradient(&x, &gradient, &mut random, |x| Ok(smooth::loss(x, smooth.forward(x)?.view())))?);

    let mut nearest = found.distances.column(0).to_vec();
    nearest.sort_unstable_by(f64::total_cmp);
    let norm = smooth::sum(gradient.iter().map(|g| g * g)).sqrt();
    Ok(format!(
        "nearest neighbour at {:.3e} (median), {:.3e} (largest); loss {loss:.6e}, gradient norm {norm:.6e}",
        nearest[n / 2],
        nearest[n - 1],
    ))
}
