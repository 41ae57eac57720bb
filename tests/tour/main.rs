//! The parts of `examples/tour`: what it reads, the scan it makes, its chapters, and that its checks fail where they should.

#[path = "../../examples/tour/arguments.rs"]
mod arguments;
#[path = "../../examples/tour/blurred.rs"]
mod blurred;
#[path = "../../examples/tour/chapters.rs"]
mod chapters;
#[path = "../../examples/tour/check.rs"]
mod check;
#[path = "../../examples/tour/features.rs"]
mod features;
#[path = "../../examples/tour/frame.rs"]
mod frame;
#[path = "../../examples/tour/interpolated.rs"]
mod interpolated;
#[path = "../../examples/tour/neighbours.rs"]
mod neighbours;
#[path = "../../examples/tour/occupied.rs"]
mod occupied;
#[path = "../../examples/tour/picture.rs"]
#[allow(dead_code, reason = "nothing is read or made up here")]
mod picture;
#[path = "../../examples/tour/pictures.rs"]
mod pictures;
#[path = "../../examples/tour/random.rs"]
mod random;
#[path = "../../examples/tour/read.rs"]
mod read;
#[path = "../../examples/tour/rotation.rs"]
mod rotation;
#[path = "../../examples/tour/scan.rs"]
mod scan;
#[path = "../../examples/tour/series.rs"]
mod series;
#[path = "../../examples/tour/smooth.rs"]
mod smooth;
#[path = "../../examples/tour/table.rs"]
mod table;

mod checking;
mod reading;
mod whole;

use arguments::{Arguments, Source};
use check::{Check, nearest};
use features::{CHANNELS, features};
use pullback::ndarray::{Array2, arr2, array};
use random::Random;
use scan::scan;
use smooth::{Smooth, loss, sum};
use std::collections::HashSet;

#[test]
fn the_scan_is_a_scan() {
    let points = scan(10_000, 1);
    assert_eq!(points.dim(), (10_000, 3));
    assert_eq!(points, scan(10_000, 1));
    assert_ne!(points, scan(10_000, 2));
    assert!(points.iter().all(|x| x.is_finite()));
    let distinct: HashSet<_> = points.outer_iter().map(|row| [0, 1, 2].map(|axis| row[axis].to_bits())).collect();
    assert_eq!(distinct.len(), 10_000);

    let range = |row: usize| (points[[row, 0]].powi(2) + points[[row, 1]].powi(2)).sqrt();
    let (near, far): (Vec<_>, Vec<_>) = (0..10_000).partition(|&row| range(row) < 15.0);
    assert!(near.len() > 2000 && far.len() > 1000, "{} near, {} far", near.len(), far.len());
    assert!((0..10_000).all(|row| range(row) < 81.0 && points[[row, 2]] > -0.2), "too far, or under the ground");
    // Spacing grows with range.
    let (coordinates, _) = points.as_slice().unwrap().as_chunks::<3>();
    let spacing = |rows: &[usize]| {
        let mut nearest: Vec<f64> = rows.iter().step_by(20).map(|&row| nearest(coordinates, row, 1)[0].0).collect();
        nearest.sort_by(f64::total_cmp);
        nearest[nearest.len() / 2]
    };
    assert!(1.5 * spacing(&near) < spacing(&far), "{} near, {} far", spacing(&near), spacing(&far));
    for count in [0, 1, 2, 63, 64, 65] {
        assert_eq!(scan(count, 1).nrows(), count);
    }
}

#[test]
fn random_numbers_have_their_moments() {
    let mut random = Random::new(5);
    let mean = |f: &mut dyn FnMut() -> f64| (0..100_000).map(|_| f()).sum::<f64>() / 1e5;
    assert!((mean(&mut || random.unit()) - 0.5).abs() < 0.01);
    assert!(mean(&mut || random.signed()).abs() < 0.01);
    assert!((mean(&mut || random.normal().powi(2)) - 1.0).abs() < 0.02);
    assert!((0..100_000).all(|_| (0.0..1.0).contains(&random.unit())));
}

#[test]
fn features_are_of_order_one_in_any_unit() {
    let points = scan(1000, 1);
    for cloud in [&points * 1e-300, &points * 1e300, &points + 1e6, arr2(&[[7.0; 3]; 4]), arr2(&[[f64::MAX; 3]])] {
        let features = features(cloud.view());
        assert_eq!(features.dim(), (cloud.nrows(), CHANNELS));
        assert!(features.iter().all(|x| x.abs() < 2.0), "{cloud}");
    }
}

#[test]
fn means_are_over_the_neighbours_that_exist() {
    let x = Array2::from_shape_fn((3, CHANNELS), |(row, _)| [1.0, 2.0, 6.0][row]);
    let smooth = Smooth::new(array![[1, 2], [2, 3], [3, 3]].view()).unwrap();
    let means = smooth.forward(x.view()).unwrap();
    assert_eq!(means.column(0), array![4.0, 6.0, 0.0]);
    assert_eq!(smooth.adjoint(x.view()).unwrap().column(0), array![0.0, 0.5, 2.5]);
    assert_eq!(loss(x.view(), means.view()), 0.5 * CHANNELS as f64 * (9.0 + 16.0 + 36.0));
    assert_eq!(sum([1e100, 1.0, -1e100]), 1.0);
}

#[test]
fn the_table_is_aligned_and_counts() {
    let mut table = table::Table::default();
    assert_eq!(table.run("one", "(1, 3)".into(), None, || 7), 7);
    table.run("another", String::new(), Some(pullback::Level::Base), || ());
    table.shapes("(2, 3) -> (2, 16)".into());
    table.check(Check { passed: false, detail: "3 is not 4".into() });
    table.chapter("A chapter");
    table.run("third", String::new(), None, || ());
    table.check(Check { passed: true, detail: "one thing".into() });
    table.check(Check { passed: true, detail: "and another".into() });
    assert_eq!(table.counts(), (3, 1));
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[3], lines[4]), (7, "", "A chapter"), "{text}");
    let column = |line: usize, word: &str| lines[line].find(word).unwrap_or_else(|| panic!("{word} in {text}"));
    assert_eq!(column(0, "level"), column(2, "base"));
    assert_eq!(column(0, "shapes"), column(1, "(1, 3)"));
    assert_eq!(column(0, "check"), column(2, "FAILED: 3 is not 4"));
    assert_eq!(column(1, "ms"), column(2, "ms"));
    assert_eq!(column(0, "check"), column(5, "ok: one thing"));
    assert_eq!(column(0, "check"), column(6, "ok: and another"));
}

#[test]
fn arguments_are_understood_or_refused() {
    let parse = |line: &str| arguments::parse(line.split_whitespace().map(Into::into));
    let from = |source| Ok(Some(Arguments { source, pictures: None }));
    assert_eq!(parse(""), from(Source::Scan(100_000)));
    assert_eq!(parse("--points 2000"), from(Source::Scan(2000)));
    assert_eq!(parse("cloud.csv"), from(Source::File("cloud.csv".into())));
    let drawn = Arguments { source: Source::Scan(5), pictures: Some("there".into()) };
    assert_eq!(parse("--pictures there --points 5"), Ok(Some(drawn)));
    assert_eq!((parse("--help"), parse("cloud.csv -h")), (Ok(None), Ok(None)));
    for (line, expected) in [
        ("--fast", "unknown option \"--fast\""),
        ("a.csv b.csv", "one file at a time: \"b.csv\" is the second"),
        ("--points", "--points needs a number"),
        ("--pictures", "--pictures needs the name of a directory"),
        ("--points 0", "--points \"0\": expected 1 to 10000000"),
        ("--points -5", "--points \"-5\": expected 1 to 10000000"),
        ("--points many", "--points \"many\": expected 1 to 10000000"),
        ("--points 9 a.csv", "--points is for the made-up scan, not for a file"),
    ] {
        assert_eq!(parse(line), Err(expected.into()), "{line}");
    }
    for extension in [".csv", ".xyz", ".txt", ".npy", ".las", ".laz"] {
        assert!(arguments::USAGE.contains(extension));
    }
}
