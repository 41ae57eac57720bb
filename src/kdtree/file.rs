//! The format of saved trees, version 1.
//!
//! A header of 192 bytes, then five sections. All numbers are little-endian; an element is a number of the tree's type.
//!
//! | byte | of the header |
//! |---|---|
//! | 0 | magic: 89 50 42 4B 44 0D 0A 1A, "PBKD" between what text modes and other formats would change |
//! | 8 | u32, the version: 1 |
//! | 12 | u8, bytes of an element: 4 is f32, 8 is f64 |
//! | 13 | u8, D, 1 to 16 |
//! | 14 | u8, options: 1 where points and queries that are not finite are absent, plus 2 where there is a periodic box |
//! | 15 | u8, 0 |
//! | 16 | u64, slots of a leaf, a power of two from 16 to 2^20 |
//! | 24 | u64, N, the rows of points, absent ones included, at most 2^32 - 2 |
//! | 32 | u64, points in the tree, at most N |
//! | 40 | u64, bytes of the file |
//! | 48 | five times, of each section: u64 its first byte, u64 its bytes, u32 its checksum, u32 0 |
//! | 168 | 20 bytes of 0 |
//! | 188 | u32, checksum of the 188 bytes before |
//!
//! | section | contents; there are `ceil(points / leaf)` leaves |
//! |---|---|
//! | box | nothing, or D elements, the origin of the periodic box, and D elements, its lengths, +inf on open axes |
//! | coordinates | (leaves, D, leaf) elements; +inf in the slots behind the last point |
//! | rows | (leaves, leaf) u32, the row numbers of the points; 2^32 - 1 in the slots behind the last point |
//! | nodes | (leaves - 1) times an element, the split, and an unsigned integer of the same size, its axis; in pre-order |
//! | leaf boxes | (leaves, 2, D) elements, the lowest and the highest coordinates of a leaf |
//!
//! A section starts at a multiple of 64 bytes, right behind the one before it, which is filled up with zeros. Checksums are
//! CRC-32 (of Ethernet and PNG); a section's covers the zeros behind it too. A tree has one file: every byte follows from it.

use super::arena::{MAX_DIMS, Node, View};
use super::tree::MAX_ROWS;
use crate::element::Element;
use crate::error::FileFault;
use bytemuck::Pod;
use std::ops::Range;

pub(super) const MAGIC: [u8; 8] = *b"\x89PBKD\r\n\x1a";
const VERSION: u32 = 1;

/// Bytes of the header.
pub(super) const HEADER: usize = 192;

/// Where the header's checksum is.
const HEADER_CHECKSUM: usize = HEADER - 4;

/// Sections start at multiples of this many bytes.
pub(super) const ALIGNMENT: u64 = 64;

/// The leaf sizes that a builder makes.
const LEAVES: Range<u64> = 16..(1 << 20) + 1;

const ABSENT: u8 = 1;
const PERIODIC: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Section {
    Box,
    Coordinates,
    Rows,
    Nodes,
    Boxes,
}

impl Section {
    pub(super) const ALL: [Self; 5] = [Self::Box, Self::Coordinates, Self::Rows, Self::Nodes, Self::Boxes];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Box => "box",
            Self::Coordinates => "coordinates",
            Self::Rows => "rows",
            Self::Nodes => "nodes",
            Self::Boxes => "leaf boxes",
        }
    }

    /// Bytes of a number of this section, whose order depends on the machine.
    pub(super) fn unit(self, shape: &Shape) -> usize {
        if self == Self::Rows { 4 } else { shape.element.into() }
    }
}

/// What a header says beside checksums.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    /// Bytes of an element.
    pub(super) element: u8,
    pub(super) dims: u8,
    pub(super) absent: bool,
    pub(super) periodic: bool,
    pub(super) leaf: u64,
    pub(super) rows: u64,
    pub(super) points: u64,
}

impl Shape {
    pub(super) fn of<T: Element>(tree: &View<'_, T>, absent: bool) -> Self {
        Self {
            element: size_of::<T>() as u8,
            dims: tree.dims as u8,
            absent,
            periodic: tree.torus.is_some(),
            leaf: tree.leaf as u64,
            rows: tree.rows as u64,
            points: tree.points as u64,
        }
    }

    /// The bytes of each section, without the zeros behind it.
    pub(super) fn sections(&self) -> [Range<u64>; 5] {
        let (element, dims) = (u64::from(self.element), u64::from(self.dims));
        let leaves = self.points.div_ceil(self.leaf);
        let mut next = HEADER as u64;
        Section::ALL.map(|section| {
            // Far from an overflow: 2^33 slots of 16 coordinates of 8 bytes at most.
            let bytes = match section {
                Section::Box => u64::from(self.periodic) * 2 * dims * element,
                Section::Coordinates => leaves * self.leaf * dims * element,
                Section::Rows => leaves * self.leaf * 4,
                Section::Nodes => leaves.saturating_sub(1) * 2 * element,
                Section::Boxes => leaves * 2 * dims * element,
            };
            let start = next;
            next = (start + bytes).next_multiple_of(ALIGNMENT);
            start..start + bytes
        })
    }

    /// The bytes of the file.
    pub(super) fn total(&self) -> u64 {
        self.sections()[4].end.next_multiple_of(ALIGNMENT)
    }

    /// The header of a file of these checksums.
    pub(super) fn header(&self, checksums: [u32; 5]) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            header[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&MAGIC);
        put(&VERSION.to_le_bytes());
        put(&[self.element, self.dims, u8::from(self.absent) * ABSENT + u8::from(self.periodic) * PERIODIC, 0]);
        for number in [self.leaf, self.rows, self.points, self.total()] {
            put(&number.to_le_bytes());
        }
        for (section, checksum) in self.sections().into_iter().zip(checksums) {
            put(&section.start.to_le_bytes());
            put(&(section.end - section.start).to_le_bytes());
            put(&u64::from(checksum).to_le_bytes());
        }
        let checksum = crc32fast::hash(&header[..HEADER_CHECKSUM]);
        header[HEADER_CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    /// What a header says, and the checksums of the sections, of a file of elements of `element` bytes and points of
    /// `dims` dimensions where they are known.
    pub(super) fn read(
        header: &[u8; HEADER],
        element: usize,
        dims: Option<usize>,
    ) -> Result<(Self, [u32; 5]), FileFault> {
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| header[at + byte]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| header[at + byte]));
        let structure = |what: String| FileFault::Structure { what };
        if header[..8] != MAGIC {
            return Err(FileFault::NotATree);
        }
        if u32_at(8) != VERSION {
            return Err(FileFault::Version { found: u32_at(8), supported: VERSION });
        }
        if u32_at(HEADER_CHECKSUM) != crc32fast::hash(&header[..HEADER_CHECKSUM]) {
            return Err(FileFault::Checksum { section: "header" });
        }
        let [own_element, own_dims, options, _] = u32_at(12).to_le_bytes();
        let shape = Self {
            element: own_element,
            dims: own_dims,
            absent: options & ABSENT != 0,
            periodic: options & PERIODIC != 0,
            leaf: u64_at(16),
            rows: u64_at(24),
            points: u64_at(32),
        };
        let name = |bytes: usize| match bytes {
            4 => Ok("f32"),
            8 => Ok("f64"),
            bytes => Err(structure(format!("elements of {bytes} bytes"))),
        };
        let (found, expected) = (name(own_element.into())?, name(element)?);
        if found != expected {
            return Err(FileFault::Element { found, expected });
        }
        if !(1..=MAX_DIMS).contains(&own_dims.into()) {
            return Err(structure(format!("{own_dims} dimensions")));
        }
        if let Some(expected) = dims
            && expected != usize::from(own_dims)
        {
            return Err(FileFault::Dimensions { found: own_dims.into(), expected });
        }
        let Self { leaf, rows, points, absent, .. } = shape;
        if !LEAVES.contains(&leaf) || !leaf.is_power_of_two() {
            return Err(structure(format!("leaves of {leaf} slots")));
        }
        if rows > MAX_ROWS as u64 || points > rows || (points < rows && !absent) {
            return Err(structure(format!("{points} points of {rows} rows")));
        }
        let checksums = std::array::from_fn(|section| u32_at(64 + 24 * section));
        if shape.header(checksums) != *header {
            return Err(structure("the header is not the one of its sizes".to_owned()));
        }
        Ok((shape, checksums))
    }
}

/// The memory of a file.
pub(super) enum Bytes {
    /// Read, a file's length of it.
    Read(Vec<u64>),
    #[cfg(feature = "mmap")]
    Mapped(memmap2::Mmap),
}

impl Bytes {
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Read(words) => bytemuck::cast_slice(words),
            #[cfg(feature = "mmap")]
            Self::Mapped(map) => map,
        }
    }
}

/// A whole file of this machine's byte order.
pub struct Contents {
    bytes: Bytes,
    sections: [Range<usize>; 5],
}

impl Contents {
    /// `bytes` are as many as a file of this shape has.
    pub(super) fn new(bytes: Bytes, shape: &Shape) -> Self {
        let sections = shape.sections().map(|section| section.start as usize..section.end as usize);
        Self { bytes, sections }
    }

    /// Sections start at multiples of [`ALIGNMENT`], of memory that is aligned to 8 bytes at least.
    pub(super) fn section<V: Pod>(&self, section: Section) -> &[V] {
        bytemuck::cast_slice(&self.bytes.as_slice()[self.sections[section as usize].clone()])
    }
}

/// The integer that a file has for a node's axis, as bytes, is that of a [`Node`].
pub(super) fn is_plain<T: Element>(node: Node<T>, plain: &[T; 2]) -> bool {
    bytemuck::bytes_of(&node.plain()[1]) == bytemuck::bytes_of(&plain[1])
}
