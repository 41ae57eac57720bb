//! Reading and mapping a tree: its sizes are checked before memory is asked for, its checksums before its contents are
//! looked at, and its contents before it is a tree.

use super::arena::{Arena, Memory};
use super::file::{ALIGNMENT, Bytes, Contents, HEADER, MAGIC, Section, Shape};
use super::periodic::Torus;
use super::save::swap;
use super::search::Tuning;
use super::tree::KdTreeDyn;
use super::verify;
use crate::element::Element;
use crate::error::{Error, FileFault, Result};
use crate::file::{self, checksum};
use crate::simd::Level;
#[cfg(feature = "mmap")]
use std::fs::File;
#[cfg(feature = "mmap")]
use std::io::ErrorKind;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

/// Memory for a stream of unknown length is asked for in steps of this many bytes, or as many as have been read.
const STEP: usize = 1 << 24;

/// Something, or what is wrong with the file.
type Checked<R = ()> = std::result::Result<R, FileFault>;

/// A source of bytes and how many it has, where that is known.
pub(super) struct Source<'a> {
    pub(super) from: &'a mut dyn Read,
    pub(super) len: Option<u64>,
    /// What errors call it.
    pub(super) name: &'a str,
}

impl Source<'_> {
    fn fault(&self, fault: FileFault) -> Error {
        Error::File { name: self.name.to_owned(), fault }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize> {
        file::fill(self.from, self.name, bytes)
    }

    /// Reads a whole tree of `dims` dimensions, where they are known.
    pub(super) fn read<T: Element>(mut self, dims: Option<usize>) -> Result<KdTreeDyn<T>> {
        let level = Level::current()?;
        let mut header = [0; HEADER];
        let read = self.fill(&mut header)?;
        let (shape, checksums) = checked_header::<T>(&header[..read], dims).map_err(|fault| self.fault(fault))?;
        let total = shape.total();
        if let Some(len) = self.len {
            check_length(len, total).map_err(|fault| self.fault(fault))?;
        }
        let bytes = self.read_all(&header, total)?;
        if self.fill(&mut [0])? > 0 {
            return Err(self.fault(FileFault::Trailing { expected: total }));
        }
        check_sums(bytemuck::cast_slice(&bytes), &shape, checksums).map_err(|fault| self.fault(fault))?;
        let mut bytes = bytes;
        if cfg!(target_endian = "big") {
            for (section, range) in Section::ALL.into_iter().zip(shape.sections()) {
                let range = range.start as usize..range.end as usize;
                swap(&mut bytemuck::cast_slice_mut(&mut bytes)[range], section.unit(&shape));
            }
        }
        tree(Bytes::Read(bytes), &shape, level).map_err(|fault| self.fault(fault))
    }

    /// The whole file of `total` bytes, in words.
    fn read_all(&mut self, header: &[u8; HEADER], total: u64) -> Result<Vec<u64>> {
        let limit = isize::MAX as u64;
        if total > limit {
            return Err(Error::TooLarge { argument: "bytes of the tree", value: total.into(), limit: limit.into() });
        }
        let total = total as usize;
        let mut words: Vec<u64> = Vec::new();
        let mut filled = 0;
        while filled < total {
            let next = if self.len.is_some() { total } else { total.min(filled + filled.max(STEP)) };
            let more = (next - filled) / 8;
            words.try_reserve_exact(more).map_err(|_| Error::Allocation { bytes: next - filled })?;
            words.resize(next / 8, 0);
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
            if filled == 0 {
                bytes[..HEADER].copy_from_slice(header);
                filled = HEADER;
            }
            filled += self.fill(&mut bytes[filled..])?;
            if filled < next {
                return Err(self.fault(FileFault::Truncated { found: filled as u64, expected: total as u64 }));
            }
        }
        Ok(words)
    }
}

/// Reads a file.
pub(super) fn load<T: Element>(path: &Path, dims: Option<usize>) -> Result<KdTreeDyn<T>> {
    let name = &path.display().to_string();
    let (mut file, len) = file::open(path, name)?;
    Source { from: &mut file, len, name }.read(dims)
}

/// Maps a file.
#[cfg(feature = "mmap")]
#[allow(unsafe_code)]
pub(super) fn map<T: Element>(path: &Path, dims: Option<usize>) -> Result<KdTreeDyn<T>> {
    let name = &path.display().to_string();
    let fault = |fault| Error::File { name: name.to_owned(), fault };
    let level = Level::current()?;
    if cfg!(target_endian = "big") {
        let message = "files are little-endian and this machine is not: load them".to_owned();
        return Err(Error::Io { name: name.to_owned(), kind: ErrorKind::Unsupported, message });
    }
    let open = || {
        let file = File::open(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(None);
        }
        // Whoever changes the file changes bytes that are borrowed here, which no library can rule out: the docs say so.
        // Axes are clamped by `View::node`, and `Permutation` checks its own copy of the rows that say which cells to write.
        // SAFETY: the map stays in this crate and is only read, as integers and floats, of which no value is invalid. What
        // is taken from it as an index is checked, in the very value that is used.
        unsafe { memmap2::Mmap::map(&file) }.map(Some)
    };
    let map = open().map_err(|error| file::io_error(name, &error))?;
    let bytes = map.as_deref().unwrap_or_default();
    let (shape, checksums) = checked_header::<T>(bytes, dims).map_err(fault)?;
    check_length(bytes.len() as u64, shape.total()).map_err(fault)?;
    check_sums(bytes, &shape, checksums).map_err(fault)?;
    let map = map.expect("a file with a header is not empty");
    tree(Bytes::Mapped(map), &shape, level).map_err(fault)
}

/// The header of a file that starts with `bytes`.
fn checked_header<T: Element>(bytes: &[u8], dims: Option<usize>) -> Checked<(Shape, [u32; 5])> {
    let Some(header) = bytes.first_chunk() else {
        let start = bytes.len().min(MAGIC.len());
        return Err(if bytes[..start] == MAGIC[..start] {
            FileFault::Truncated { found: bytes.len() as u64, expected: HEADER as u64 }
        } else {
            FileFault::NotATree
        });
    };
    Shape::read(header, size_of::<T>(), dims)
}

fn check_length(found: u64, expected: u64) -> Checked {
    match found {
        _ if found < expected => Err(FileFault::Truncated { found, expected }),
        _ if found > expected => Err(FileFault::Trailing { expected }),
        _ => Ok(()),
    }
}

/// Compares the checksums of the sections of a whole file.
fn check_sums(file: &[u8], shape: &Shape, checksums: [u32; 5]) -> Checked {
    for ((section, range), expected) in Section::ALL.into_iter().zip(shape.sections()).zip(checksums) {
        let end = range.end.next_multiple_of(ALIGNMENT) as usize;
        if checksum(&file[range.start as usize..end]) != expected {
            return Err(FileFault::Checksum { section: section.name() });
        }
        if file[range.end as usize..end].iter().any(|&byte| byte != 0) {
            return Err(FileFault::Structure { what: format!("something is behind the {}", section.name()) });
        }
    }
    Ok(())
}

/// A whole file as a tree.
fn tree<T: Element>(bytes: Bytes, shape: &Shape, level: Level) -> Checked<KdTreeDyn<T>> {
    let contents = Contents::new(bytes, shape);
    let torus = shape.periodic.then(|| {
        let (origin, lengths) = contents.section::<T>(Section::Box).split_at(shape.dims.into());
        Torus { origin: origin.to_vec(), lengths: lengths.to_vec() }
    });
    let arena = Arena {
        dims: shape.dims.into(),
        leaf: shape.leaf as usize,
        rows: shape.rows as usize,
        points: shape.points as usize,
        torus,
        memory: Memory::File(contents),
        by_row: OnceLock::new(),
    };
    verify::structure(&arena.view()).map_err(|what| FileFault::Structure { what })?;
    Ok(KdTreeDyn { arena, level, tuning: Tuning::default(), absent: shape.absent })
}
