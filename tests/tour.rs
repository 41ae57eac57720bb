//! The parts of `examples/tour`: what it reads, the scan it makes, and that its checks fail where they should.

#[path = "../examples/tour/arguments.rs"]
mod arguments;
#[path = "../examples/tour/check.rs"]
mod check;
#[path = "../examples/tour/features.rs"]
mod features;
#[path = "../examples/tour/random.rs"]
mod random;
#[path = "../examples/tour/read.rs"]
mod read;
#[path = "../examples/tour/scan.rs"]
mod scan;
#[path = "../examples/tour/smooth.rs"]
mod smooth;
#[path = "../examples/tour/table.rs"]
mod table;

use arguments::Source;
use check::{Check, nearest};
use features::{CHANNELS, features};
use las::point::Format;
use las::{Builder, Point, Transform, Vector, Writer};
use pullback::ndarray::{Array2, ArrayView2, arr2, array, s};
use random::Random;
use read::Cloud;
use scan::scan;
use smooth::{Smooth, loss, sum};
use std::collections::HashSet;
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

/// Neighbours by brute force, as the tree returns them.
fn brute(points: &Array2<f64>, count: usize) -> (Array2<f64>, Array2<u32>) {
    let (coordinates, _) = points.as_slice().unwrap().as_chunks::<3>();
    let all: Vec<_> = (0..coordinates.len()).map(|row| nearest(coordinates, row, count)).collect();
    let shape = (coordinates.len(), count);
    (Array2::from_shape_fn(shape, |(i, j)| all[i][j].0), Array2::from_shape_fn(shape, |(i, j)| all[i][j].1))
}

#[test]
fn brute_force_breaks_ties_by_index_and_pads() {
    // The duplicate is a neighbour, the point itself is not.
    let points = [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 2.0, 0.0], [1.0, 2.0, 0.0]];
    let root = 2f64.sqrt();
    assert_eq!(nearest(&points, 0, 2), [(0.0, 1), (root, 2)]);
    assert_eq!(nearest(&points, 2, 4), [(root, 0), (root, 1), (2.0, 3), (f64::INFINITY, 4)]);
    assert_eq!(nearest(&points[..1], 0, 1), [(f64::INFINITY, 1)]);
}

#[test]
fn checks_pass_on_right_results_and_fail_on_wrong_ones() {
    // The last two clouds are smaller than the number of neighbours.
    for count in [300, 16, 1] {
        let points = scan(count, 1);
        let (distances, indices) = brute(&points, 16);
        let passed = |check: Check| check.passed;
        assert!(passed(check::neighbours(&points, 16, distances.view(), indices.view())));

        let x = features(points.view());
        let smooth = Smooth::new(indices.view()).unwrap();
        let gathered = smooth.gather.forward(x.view()).unwrap();
        assert!(passed(check::gathered(x.view(), indices.view(), gathered.view())));
        let mut random = Random::new(2);
        let y = x.mapv(|_| random.signed());
        let (means, adjoint) = (smooth.forward(x.view()).unwrap(), smooth.adjoint(y.view()).unwrap());
        assert!(passed(check::identity(&x, &means, &y, &adjoint)));
        let difference = &x - &means;
        let gradient = &difference - &smooth.adjoint(difference.view()).unwrap();
        let mut by_difference = |gradient: &Array2<f64>| {
            let loss = |x: ArrayView2<'_, f64>| smooth.forward(x).map(|means| loss(x, means.view()));
            check::gradient(&x, gradient, &mut random, loss).unwrap()
        };
        assert!(passed(by_difference(&gradient)));

        let mut wrong = distances.clone();
        wrong[[0, 0]] = f64::from_bits(wrong[[0, 0]].to_bits() ^ 1);
        assert!(!passed(check::neighbours(&points, 16, wrong.view(), indices.view())));
        let narrow = distances.slice(s![.., ..15]);
        assert!(!passed(check::neighbours(&points, 16, narrow, indices.view())));
        let mut wrong = indices.clone();
        wrong[[0, 15]] ^= 1;
        assert!(!passed(check::neighbours(&points, 16, distances.view(), wrong.view())));
        let mut wrong = gathered.clone();
        wrong[[0, 3, 7]] += 1e-9;
        assert!(!passed(check::gathered(x.view(), indices.view(), wrong.view())));
        let mut wrong = adjoint.clone();
        // The intensity, which is not 0 anywhere.
        wrong[[0, 6]] += 1e-6;
        assert!(!passed(check::identity(&x, &means, &y, &wrong)));
        wrong[[0, 6]] = f64::NAN;
        assert!(!passed(check::identity(&x, &means, &y, &wrong)));
        let mut wrong = gradient.clone();
        wrong[[0, 0]] += 1e-6;
        assert!(!passed(by_difference(&wrong)));
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
    assert_eq!(table.counts(), (1, 1));
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    let column = |line: usize, word: &str| lines[line].find(word).unwrap_or_else(|| panic!("{word} in {text}"));
    assert_eq!(column(0, "level"), column(2, "base"));
    assert_eq!(column(0, "shapes"), column(1, "(1, 3)"));
    assert_eq!(column(0, "check"), column(2, "FAILED: 3 is not 4"));
    assert_eq!(column(1, "ms"), column(2, "ms"));
}

#[test]
fn arguments_are_understood_or_refused() {
    let parse = |line: &str| arguments::parse(line.split_whitespace().map(Into::into));
    assert_eq!(parse(""), Ok(Some(Source::Scan(100_000))));
    assert_eq!(parse("--points 2000"), Ok(Some(Source::Scan(2000))));
    assert_eq!(parse("cloud.csv"), Ok(Some(Source::File("cloud.csv".into()))));
    assert_eq!((parse("--help"), parse("cloud.csv -h")), (Ok(None), Ok(None)));
    for (line, expected) in [
        ("--fast", "unknown option \"--fast\""),
        ("a.csv b.csv", "one file at a time: \"b.csv\" is the second"),
        ("--points", "--points needs a number"),
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
