//! Pyramids beside the time that reading what they are made from takes, rays by the second, and what there is without them: loops over
//! slices, as array libraries have them, and the walk over every cell.

use crate::measure::{Random, Suite, entry, job, rounds, summary};
use crate::memory::Memory;
use crate::mipmap_rows::RowBits;
use pullback::bitvec::vec::BitVec;
use pullback::mipmap::{MaxPyramid, Pyramid, PyramidBuilder};
use pullback::ndarray::{Array2, Array3, s};
use rayon::prelude::*;
use std::f64::consts::TAU;
use std::hint::black_box;
use std::path::Path;

pub fn report(suite: &Suite) {
    builds(suite);
    updates(suite);
    numbers(suite);
    rays(suite);
    slabs(suite);
}

/// Cells on an axis of the even case.
fn side(suite: &Suite) -> usize {
    if suite.quick() { 64 } else { 512 }
}

/// A scene with a share of occupied cells.
fn scene(shape: [usize; 3], share: f32) -> Array3<f32> {
    let mut random = Random::new(11);
    Array3::from_shape_simple_fn(shape, || if random.unit() < share { 1.0 } else { 0.0 })
}

/// Level by level from slices, a byte a cell: what array libraries do.
fn by_slices(x: &Array3<f32>) -> Vec<Array3<bool>> {
    let mut levels = vec![x.mapv(|x| x > 0.0)];
    while levels[levels.len() - 1].len() > 1 {
        let below = &levels[levels.len() - 1];
        let (a, b, c) = below.dim();
        let mut level = Array3::from_elem((a.div_ceil(2), b.div_ceil(2), c.div_ceil(2)), false);
        for child in 0..8 {
            let from = below.slice(s![child / 4..;2, child / 2 % 2..;2, child % 2..;2]);
            let (a, b, c) = from.dim();
            level.slice_mut(s![..a, ..b, ..c]).zip_mut_with(&from, |level, &cell| *level |= cell);
        }
        levels.push(level);
    }
    levels
}

fn builds(suite: &Suite) {
    let n = side(suite);
    for (shape, label) in [([n, n, n], "even"), ([n + 1, n - 1, n - 3], "odd")] {
        let name = |input: &str| format!("mipmap/build-{input}/{label}-{n}");
        let names = ["f32", "f64", "u8", "i32", "rows"].map(name);
        if !names.iter().any(|name| suite.wants(name)) {
            continue;
        }
        let memory = Memory::new();
        let floats = scene(shape, 0.01);
        let voxels = floats.len();
        if suite.wants(&names[0]) {
            let mut pyramid = Pyramid::from_threshold(floats.view(), 0.0).expect("a grid");
            let ours = || pyramid.update([0; 3], floats.view(), 0.0).expect("a grid");
            let fresh = || drop(black_box(Pyramid::from_threshold(floats.view(), 0.0).expect("a grid")));
            let slices = || drop(black_box(by_slices(&floats)));
            let peers = vec![entry("new", fresh), entry("slices", slices)];
            job(suite, &names[0], memory.limit_read(4 * voxels), entry("into", ours), peers);
        }
        if suite.wants(&names[1]) {
            let doubles = floats.mapv(f64::from);
            let mut pyramid = Pyramid::empty(shape).expect("a grid");
            let ours = || pyramid.update([0; 3], doubles.view(), 0.0).expect("a grid");
            job(suite, &names[1], memory.limit_read(8 * voxels), entry("into", ours), vec![]);
        }
        if suite.wants(&names[2]) {
            let bytes = floats.mapv(|x| x as u8);
            let mut pyramid = Pyramid::empty(shape).expect("a grid");
            let ours = || pyramid.update_nonzero([0; 3], bytes.view()).expect("a grid");
            let fresh = || drop(black_box(Pyramid::from_nonzero(bytes.view()).expect("a grid")));
            job(suite, &names[2], memory.limit_read(voxels), entry("into", ours), vec![entry("new", fresh)]);
        }
        if suite.wants(&names[3]) {
            let ints = floats.mapv(|x| x as i32);
            let mut pyramid = Pyramid::empty(shape).expect("a grid");
            let ours = || pyramid.update_nonzero([0; 3], ints.view()).expect("a grid");
            job(suite, &names[3], memory.limit_read(4 * voxels), entry("into", ours), vec![]);
        }
        if suite.wants(&names[4]) {
            let mut pyramid = Pyramid::from_threshold(floats.view(), 0.0).expect("a grid");
            let rows: BitVec<u64> = pyramid.level(0).expect("level 0").rows().expect("rows");
            let again = || drop(black_box(Pyramid::from_bits(&rows, shape).expect("a grid")));
            let ours = || pyramid.update_bits([0; 3], &rows, shape).expect("a grid");
            let row_bits = || drop(black_box(RowBits::new(rows.as_raw_slice(), shape)));
            let peers = vec![entry("new", again), entry("row-bits", row_bits)];
            // Rows are read and words are written.
            job(suite, &names[4], memory.limit_read(voxels / 4), entry("into", ours), peers);
        }
    }
}

/// A dirty box, in microseconds, hot.
fn updates(suite: &Suite) {
    let (name, n) = ("mipmap/update-box/32", side(suite));
    if !suite.wants(name) {
        return;
    }
    const CALLS: usize = 1000;
    let mut pyramid = Pyramid::from_threshold(scene([n; 3], 0.01).view(), 0.0).expect("a grid");
    let part = scene([32; 3], 0.01);
    let times = |lo: [usize; 3], pyramid: &mut Pyramid| {
        let call = || (0..CALLS).for_each(|_| pyramid.update(lo, part.view(), 0.0).expect("a box"));
        let mut entries = [entry(name, call)];
        summary(rounds(suite, &mut entries).remove(0).into_iter().map(|ms| ms * 1e3 / CALLS as f64).collect()).0
    };
    let aligned = times([n / 4; 3], &mut pyramid);
    let across = times([n / 4 + 3; 3], &mut pyramid);
    println!("\n{name:55} {aligned:9.2} us, across bricks {across:.2} us");
    println!("TIME job={name} aligned_us={aligned:.3} across_us={across:.3}");
    suite.figure(name, "microseconds", aligned);
    suite.figure(format!("{name}/across"), "microseconds", across);
}

fn numbers(suite: &Suite) {
    let n = side(suite);
    let names = ["forward", "adjoint"].map(|job| format!("mipmap/max-{job}/{n}/f32"));
    if !names.iter().any(|name| suite.wants(name)) {
        return;
    }
    let mut memory = Memory::new();
    let mut random = Random::new(12);
    let x = Array3::from_shape_simple_fn([n; 3], || random.unit());
    let pyramid = MaxPyramid::<f32>::new([n; 3]).expect("a shape");
    let mut found = pyramid.forward(x.view()).expect("a shape");
    let voxels = x.len();
    // Levels are a seventh as large as x, arguments a quarter of that.
    if suite.wants(&names[0]) {
        let ours = || {
            pyramid.forward_into(x.view(), &mut found.levels, &mut found.arguments).expect("shapes");
        };
        job(suite, &names[0], memory.limit_read(4 * voxels + 5 * voxels / 7), entry("into", ours), vec![]);
    }
    if suite.wants(&names[1]) {
        let mut grad_x = x;
        let cotangents: Vec<_> =
            [None].into_iter().chain(found.levels.iter().map(|level| Some(level.view()))).collect();
        let ours = || {
            pyramid.adjoint_into(&cotangents, &found.arguments, grad_x.view_mut()).expect("shapes");
        };
        job(suite, &names[1], memory.limit_fill(4 * voxels + 5 * voxels / 7), entry("into", ours), vec![]);
    }
}

/// A camera at one side that looks to the other: origins and directions of `pixels`^2 rays.
fn camera(n: usize, pixels: usize) -> (Array2<f64>, Array2<f64>) {
    let eye = [-0.4 * n as f64, 0.53 * n as f64, 0.47 * n as f64];
    let origins = Array2::from_shape_fn((pixels * pixels, 3), |(_, axis)| eye[axis]);
    let directions = Array2::from_shape_fn((pixels * pixels, 3), |(ray, axis)| match axis {
        0 => 1.0,
        1 => (ray % pixels) as f64 / pixels as f64 - 0.5,
        _ => (ray / pixels) as f64 / pixels as f64 - 0.5,
    });
    (origins, directions)
}

/// A bumpy sphere, as a scan of an object is one: only its surface is occupied.
fn shell(n: usize) -> Pyramid {
    let mut random = Random::new(13);
    let points = Array2::from_shape_vec(
        (40 * n * n / 16, 3),
        (0..40 * n * n / 16)
            .flat_map(|_| {
                let (turn, up) = (TAU * f64::from(random.unit()), 2.0 * f64::from(random.unit()) - 1.0);
                let level = (1.0 - up * up).sqrt();
                let radius = n as f64 * (0.38 + 0.03 * (5.0 * turn).sin() * (7.0 * up).cos());
                [level * turn.cos(), level * turn.sin(), up].map(|x| n as f64 / 2.0 + radius * x)
            })
            .collect(),
    );
    let points = points.expect("three coordinates a point");
    Pyramid::from_points(points.view(), [0.0; 3], 1.0, [n; 3]).expect("a grid").0
}

fn rays(suite: &Suite) {
    let n = side(suite);
    let pixels = if suite.quick() { 32 } else { 1000 };
    for label in ["sparse", "shell", "scan"] {
        let name = format!("mipmap/rays-{label}/{n}");
        if !suite.wants(&name) {
            continue;
        }
        let pyramid = match label {
            "sparse" => Some(Pyramid::from_threshold(scene([n; 3], 0.01).view(), 0.0).expect("a grid")),
            "shell" => Some(shell(n)),
            _ => scan(n),
        };
        let Some(pyramid) = pyramid else {
            println!("\n{name:55} no scan: PULLBACK_DATA does not name a directory with autzen-thin.las");
            continue;
        };
        let ground = Pyramid::build_to(pyramid.clone().into_occupancy(), 1).expect("a grid");
        let (origins, directions) = camera(n, pixels);
        let cast = |pyramid: &Pyramid| {
            let hits = pyramid.raycast(origins.view(), directions.view(), f64::INFINITY).expect("rays");
            drop(black_box(hits));
        };
        let bits: BitVec<u64> = pyramid.level(0).expect("level 0").rows().expect("rows");
        let rows = RowBits::new(bits.as_raw_slice(), [n; 3]);
        let level = pyramid.level(0).expect("level 0");
        // Every cell of every hundredth ray, one ray after another: how many hit something.
        let walk = |is_occupied: &(dyn Fn([usize; 3]) -> bool + Sync)| -> usize {
            let first = |ray: usize| {
                let row = |array: &Array2<f64>| [0, 1, 2].map(|axis| array[[ray, axis]]);
                let mut cells = pyramid.cells(row(&origins), row(&directions), f64::INFINITY).expect("a ray");
                usize::from(cells.any(|visit| is_occupied(visit.cell)))
            };
            (0..origins.nrows() / 100).into_par_iter().map(|ray| first(100 * ray)).sum()
        };
        let (in_bricks, in_rows) = (|| walk(&|cell| level.get(cell).expect("a cell")), || walk(&|cell| rows.get(cell)));
        let hits = in_bricks();
        let mut entries = [
            entry("levels", || cast(&pyramid)),
            entry("bricks", || cast(&ground)),
            entry("walk in bricks", || assert_eq!(in_bricks(), hits)),
            entry("walk in rows", || assert_eq!(in_rows(), hits)),
        ];
        let times = rounds(suite, &mut entries);
        let rate = |at: usize, rays: usize| rays as f64 / 1e3 / summary(times[at].clone()).0;
        let (ours, bricks) = (rate(0, pixels * pixels), rate(1, pixels * pixels));
        let [in_bricks, in_rows] = [2, 3].map(|at| rate(at, pixels * pixels / 100));
        println!("\n{name:55} {ours:9.2} million rays a second, {bricks:.2} without levels above bricks");
        println!("{:55} cell by cell {in_bricks:.3} in bricks, {in_rows:.3} in rows of bits", "");
        println!(
            "RATE job={name} million_a_second={ours:.3} bricks={bricks:.3} walk={in_bricks:.3} walk_in_rows={in_rows:.3}"
        );
        for (job, rate) in [("", ours), ("/bricks", bricks), ("/walk", in_bricks), ("/walk-in-rows", in_rows)] {
            suite.figure(format!("{name}{job}"), "million rays a second", rate);
        }
    }
}

/// A scan of a town from above, the longest side of which is `n` cells.
fn scan(n: usize) -> Option<Pyramid> {
    let file = Path::new(&std::env::var_os("PULLBACK_DATA")?).join("autzen-thin.las");
    let mut reader = las::Reader::from_path(file).ok()?;
    let mut data = las::PointDataBuilder::new().for_header(reader.header()).build();
    reader.fill_points(reader.header().number_of_points(), &mut data).ok()?;
    let points: Vec<[f64; 3]> = data.x().zip(data.y()).zip(data.z()).map(|((x, y), z)| [x, y, z]).collect();
    let (mut lo, mut hi) = ([f64::MAX; 3], [f64::MIN; 3]);
    for point in &points {
        for axis in 0..3 {
            (lo[axis], hi[axis]) = (lo[axis].min(point[axis]), hi[axis].max(point[axis]));
        }
    }
    let longest = (0..3).map(|axis| hi[axis] - lo[axis]).fold(0.0, f64::max);
    let cells = Array2::from(points);
    Some(Pyramid::from_points(cells.view(), lo, longest / (n as f64 - 0.5), [n; 3]).ok()?.0)
}

/// A grid of a gigabyte of bits, from slabs that are made one at a time. Only where it is named: it takes a while.
fn slabs(suite: &Suite) {
    let name = "mipmap/slabs";
    if !suite.names("slabs") {
        return;
    }
    let n = if suite.quick() { 256 } else { 2048 };
    let mut builder = PyramidBuilder::new([n; 3]).expect("a grid");
    let start = std::time::Instant::now();
    let mut slab = Array3::<f32>::zeros((1, n, n));
    for x in 0..n {
        slab[[0, x, (7 * x) % n]] = 1.0;
        builder.push_slab(slab.view(), 0.5).expect("a slab");
    }
    let pyramid = builder.finish().expect("all slabs");
    let seconds = start.elapsed().as_secs_f64();
    let gigabytes = pyramid.bytes() as f64 / f64::from(1 << 30);
    let count = pyramid.level(0).expect("level 0").count();
    assert_eq!(count, (n * (n + 1) / 2) as u64);
    println!("\n{name:55} {seconds:9.2} s for {n}^3 from planes, {gigabytes:.2} GiB, {count} occupied");
    println!("TIME job={name} seconds={seconds:.3} gib={gigabytes:.3}");
    suite.figure(name, "seconds", seconds);
}
