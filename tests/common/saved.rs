//! Saved trees as bytes, taken apart and put together by the documented format, and comparisons of trees.

use super::space::METRICS;
use super::values::Value;
use ndarray::{Array2, ArrayView2};
use pullback::kdtree::{KdTreeDyn, Tuning};
use std::ops::Range;

pub const HEADER: usize = 192;

/// The sections in their order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Section {
    Box,
    Coordinates,
    Rows,
    Nodes,
    Boxes,
}

pub const SECTIONS: [Section; 5] = [Section::Box, Section::Coordinates, Section::Rows, Section::Nodes, Section::Boxes];

pub fn u64_at(file: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(file[at..at + 8].try_into().expect("8 bytes"))
}

pub fn u32_at(file: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(file[at..at + 4].try_into().expect("4 bytes"))
}

/// Where a section is, by the header.
pub fn section(file: &[u8], section: Section) -> Range<usize> {
    let entry = 48 + 24 * section as usize;
    let start = u64_at(file, entry) as usize;
    start..start.saturating_add(u64_at(file, entry + 8) as usize)
}

/// CRC-32, bit by bit.
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

/// Makes all checksums right, as far as the sections are in the file.
pub fn seal(file: &mut [u8]) {
    for which in SECTIONS {
        let range = section(file, which);
        if let Some(bytes) = range.end.checked_next_multiple_of(64).and_then(|end| file.get(range.start..end)) {
            let checksum = crc32(bytes);
            file[64 + 24 * which as usize..][..4].copy_from_slice(&checksum.to_le_bytes());
        }
    }
    let checksum = crc32(&file[..HEADER - 4]);
    file[HEADER - 4..HEADER].copy_from_slice(&checksum.to_le_bytes());
}

pub fn written<T: Value>(tree: &KdTreeDyn<T>) -> Vec<u8> {
    let mut file = Vec::new();
    tree.write(&mut file).expect("a vector takes all");
    file
}

/// Every search of both trees gives the same bits.
#[track_caller]
pub fn assert_same_answers<T: Value>(a: &KdTreeDyn<T>, b: &KdTreeDyn<T>, queries: ArrayView2<'_, T>) {
    assert_eq!((a.len(), a.dims()), (b.len(), b.dims()));
    let bits = |distances: &Array2<T>| distances.mapv(|d| Value::to_bits(d));
    for metric in METRICS {
        let (a, b) = (a.search().metric(metric), b.search().metric(metric));
        for k in [1, 5, 40] {
            for (a, b) in [(a.knn(queries, k), b.knn(queries, k)), (a.knn_self(k), b.knn_self(k))] {
                let (a, b) = (a.expect("good queries"), b.expect("good queries"));
                assert!(a.indices == b.indices && bits(&a.distances) == bits(&b.distances), "{k} by {metric:?}");
            }
        }
        let radius = T::from_f32(0.5).expect("a half");
        let radii = || pullback::kdtree::PerQuery::One(radius);
        assert_eq!(a.radius(queries, radii()), b.radius(queries, radii()));
        assert_eq!(a.by_distance().radius(queries, radii()), b.by_distance().radius(queries, radii()));
        assert_eq!(a.radius_count(queries, radii()), b.radius_count(queries, radii()));
        assert_eq!(a.pairs_within(radius), b.pairs_within(radius));
    }
}

/// Every search of a tree, for what it may do beside answering.
pub fn search_all<T: Value>(mut tree: KdTreeDyn<T>, queries: ArrayView2<'_, T>) {
    for packets in [false, true] {
        tree = tree.with_tuning(Tuning { packets: Some(packets), ..Tuning::default() });
        for metric in METRICS {
            let (search, radius) = (tree.search().metric(metric), T::one());
            let radii = || pullback::kdtree::PerQuery::One(radius);
            let _ = (search.knn(queries, 3), search.knn_self(3), search.pairs_within(radius));
            let _ = (search.radius(queries, radii()), search.by_distance().radius(queries, radii()));
            let _ = search.radius_count(queries, radii());
        }
    }
}
