//! Files of trees that the fuzzer makes up, of right sizes and checksums, so that only their structure can be wrong. One
//! that is accepted answers every search as brute force does over its points.
#![no_main]

use common::cloud::Cloud;
use common::limits::Limit;
use common::neighbors::BruteForce;
use common::neighbors_case::Case;
use common::random::Random;
use common::saved::{HEADER, Section, crc32, seal, section, u32_at, u64_at, written};
use common::search_case::SearchCase;
use common::space::{METRICS, Space};
use common::values::Value;
use libfuzzer_sys::fuzz_target;
use ndarray::Array2;
use pullback::Level;
use pullback::kdtree::{KdTreeDyn, Tuning};

// Without the strategies, which need proptest.
#[allow(dead_code)]
#[path = "../../tests/common"]
mod common {
    pub mod cells;
    pub mod cloud;
    pub mod limits;
    pub mod neighbors;
    pub mod neighbors_case;
    pub mod random;
    pub mod ranges;
    pub mod saved;
    pub mod search_case;
    pub mod space;
    pub mod threads;
    pub mod values;
}

/// Sizes in the header of a file that is this one otherwise, and all that follows from them.
fn repaired(file: &[u8]) -> Option<Vec<u8>> {
    let mut header = file.get(..HEADER)?.to_vec();
    header[..12].copy_from_slice(b"\x89PBKD\r\n\x1a\x01\0\0\0");
    let element = if header[12] % 8 == 0 { 8 } else { 4 };
    let dims = 1 + (header[13].wrapping_sub(1)) % 16;
    let options = header[14] % 4;
    let leaf = if u64_at(&header, 16) % 64 == 0 { 64 } else { 16 << (u64_at(&header, 16) / 32 % 2) };
    let rows = u64_at(&header, 24) % 130;
    let points = if options % 2 == 1 { u64_at(&header, 32) % (rows + 1) } else { rows };
    header[12..16].copy_from_slice(&[element, dims, options, 0]);
    let (element, dims, leaves) = (u64::from(element), u64::from(dims), points.div_ceil(leaf));
    let sizes = [
        if options >= 2 { 2 * dims * element } else { 0 },
        leaves * leaf * dims * element,
        leaves * leaf * 4,
        leaves.saturating_sub(1) * 2 * element,
        leaves * 2 * dims * element,
    ];
    let mut next = HEADER as u64;
    for (at, size) in sizes.into_iter().enumerate() {
        for (at, number) in [(48 + 24 * at, next), (56 + 24 * at, size), (64 + 24 * at, 0)] {
            header[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        next = (next + size).next_multiple_of(64);
    }
    for (at, number) in [(16, leaf), (24, rows), (32, points), (40, next)] {
        header[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    header[168..188].fill(0);
    header.extend_from_slice(&file[HEADER..]);
    header.resize(next as usize, 0);
    seal(&mut header);
    Some(header)
}

fn elements<T: Value>(file: &[u8], which: Section) -> Vec<T> {
    file[section(file, which)].chunks(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

/// The points that a file says there are, as they lie in its space; rows that it does not name are absent.
fn points<T: Value>(file: &[u8], dims: usize, leaf: usize) -> Array2<T> {
    let (coordinates, rows) = (elements::<T>(file, Section::Coordinates), section(file, Section::Rows).start);
    let mut points = Array2::from_elem([u64_at(file, 24) as usize, dims], T::nan());
    for slot in 0..u64_at(file, 32) as usize {
        let row = u32_at(file, rows + 4 * slot) as usize;
        for axis in 0..dims {
            points[[row, axis]] = coordinates[(slot / leaf * dims + axis) * leaf + slot % leaf];
        }
    }
    points
}

fn space<T: Value>(file: &[u8], dims: usize) -> Space<T> {
    let numbers = elements::<T>(file, Section::Box);
    let Some((origin, lengths)) = numbers.split_at_checked(dims) else { return Space::open(dims) };
    let lengths: Vec<Option<T>> = lengths.iter().map(|&length| Some(length).filter(|x| x.is_finite())).collect();
    Space::periodic(&lengths, origin)
}

fn check<T: Value>(file: &[u8]) {
    let Ok(tree) = KdTreeDyn::<T>::read(file) else { return };
    assert_eq!(written(&tree), file, "a tree has one file");
    let (dims, leaf) = (tree.dims(), u64_at(file, 16) as usize);
    let points = points::<T>(file, dims, leaf);
    let random = &mut Random::new(crc32(file).into());
    let levels: Vec<Level> = Level::ALL.into_iter().filter(|level| level.is_available()).collect();
    let mut choice = || Some(random.below(2) == 1);
    let tuning = Tuning { packets: choice(), sort: choice(), parallel: Some(false) };
    let tree = tree.with_level(random.one_of(&levels)).expect("an available level").with_tuning(tuning);
    let queries = Cloud::Uniform.queries(&points, 6, random);
    let metric = random.one_of(&METRICS);
    let search = SearchCase {
        case: Case { k: 1 + random.below(20), ..Case::default() },
        metric,
        radius: Limit::Any,
        each: random.below(2) == 1,
        by_distance: random.below(2) == 1,
        ..SearchCase::default()
    };
    let brute_force = BruteForce::of_wrapped(space(file, dims), points).metric(metric);
    search.check_points(&tree, &brute_force, random);
    search.check_queries(&tree, &brute_force, queries.view(), random);
}

fuzz_target!(|file: &[u8]| {
    // As it is: mostly another file than a tree.
    let _ = (KdTreeDyn::<f32>::read(file), KdTreeDyn::<f64>::read(file));
    let Some(file) = repaired(file) else { return };
    match file[12] {
        4 => check::<f32>(&file),
        _ => check::<f64>(&file),
    }
});
