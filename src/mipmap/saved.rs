//! Pyramids in files: version 1 of the format.
//!
//! All numbers are little-endian. Levels above the finest one are not in the file: they are made when it is loaded, and are then
//! those of its cells whatever the file says.
//!
//! | byte | contents |
//! |---|---|
//! | 0 | magic: 89 50 42 4D 4D 0D 0A 1A, "PBMM" between what text modes and other formats would change |
//! | 8 | u32, the version: 1 |
//! | 12 | u32, options: 1 where there is a mapping |
//! | 16 | three times u64, the shape |
//! | 40 | u64, the number of levels |
//! | 48 | three times f64, the origin of the mapping, and f64, the length of a voxel; 0 without a mapping |
//! | 80 | u64, bytes of the file |
//! | 88 | u32, checksum of the words |
//! | 92 | u32, checksum of the 92 bytes before |
//! | 96 | u64 each, the words of level 0 as they are in memory |
//!
//! Checksums are CRC-32 (of Ethernet and PNG). A pyramid has one file: every byte follows from it.

use super::bricks::{Bricks, Frame};
use super::pyramid::{Mapping, Pyramid, check_cells, check_levels};
use super::tuning::Tuning;
use crate::error::{Error, FileFault, Result};
use crate::file::{checksum, fill, io_error, open, save};
use crate::simd::Level;
use std::io::{Read, Write};
use std::path::Path;

const MAGIC: [u8; 8] = *b"\x89PBMM\r\n\x1a";
const VERSION: u32 = 1;
const HEADER: usize = 96;
const MAPPED: u32 = 1;

/// Memory for a stream of unknown length is asked for in steps of this many words, or as many as have been read.
const STEP: usize = 1 << 21;

/// What a header says.
struct Header {
    frame: Frame,
    levels: usize,
    mapping: Option<Mapping>,
    words: u32,
}

impl Header {
    fn total(&self) -> u64 {
        HEADER as u64 + 8 * self.frame.words() as u64
    }

    fn bytes(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            header[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&MAGIC);
        put(&VERSION.to_le_bytes());
        put(&(if self.mapping.is_some() { MAPPED } else { 0 }).to_le_bytes());
        self.frame.shape.iter().for_each(|&n| put(&(n as u64).to_le_bytes()));
        put(&(self.levels as u64).to_le_bytes());
        let mapping = self.mapping.unwrap_or(Mapping { origin: [0.0; 3], voxel: 0.0 });
        mapping.origin.iter().for_each(|x| put(&x.to_le_bytes()));
        put(&mapping.voxel.to_le_bytes());
        put(&self.total().to_le_bytes());
        put(&self.words.to_le_bytes());
        let checksum = crc32fast::hash(&header[..HEADER - 4]);
        header[HEADER - 4..].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    fn read(bytes: &[u8]) -> std::result::Result<Self, FileFault> {
        let Some(header) = bytes.first_chunk::<HEADER>() else {
            let start = bytes.len().min(MAGIC.len());
            return Err(if bytes[..start] == MAGIC[..start] {
                FileFault::Truncated { found: bytes.len() as u64, expected: HEADER as u64 }
            } else {
                FileFault::NotAPyramid
            });
        };
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| header[at + byte]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| header[at + byte]));
        let structure = |what: String| FileFault::Structure { what };
        if header[..8] != MAGIC {
            return Err(FileFault::NotAPyramid);
        }
        if u32_at(8) != VERSION {
            return Err(FileFault::Version { found: u32_at(8), supported: VERSION });
        }
        if u32_at(HEADER - 4) != crc32fast::hash(&header[..HEADER - 4]) {
            return Err(FileFault::Checksum { section: "header" });
        }
        let numbers = [16, 24, 32, 40].map(|at| usize::try_from(u64_at(at)).unwrap_or(usize::MAX));
        let [shape @ .., levels] = numbers;
        let wrong = |error: Error| structure(error.to_string());
        check_cells(shape).map_err(wrong)?;
        let frame = Frame::new(shape).map_err(wrong)?;
        check_levels(shape, levels).map_err(wrong)?;
        let floats = [48, 56, 64, 72].map(|at| f64::from_bits(u64_at(at)));
        let [origin @ .., voxel] = floats;
        let mapping = match u32_at(12) {
            MAPPED => Some(Mapping::new(origin, voxel).map_err(wrong)?),
            _ => None,
        };
        let read = Self { frame, levels, mapping, words: u32_at(88) };
        if read.bytes() != *header {
            return Err(structure("the header is not the one of its sizes".to_owned()));
        }
        Ok(read)
    }
}

fn check_length(found: u64, expected: u64) -> std::result::Result<(), FileFault> {
    match found {
        _ if found < expected => Err(FileFault::Truncated { found, expected }),
        _ if found > expected => Err(FileFault::Trailing { expected }),
        _ => Ok(()),
    }
}

/// Turns words around where this machine has their bytes the other way than files.
fn swap(words: &mut [u64]) {
    if cfg!(target_endian = "big") {
        words.iter_mut().for_each(|word| *word = word.swap_bytes());
    }
}

impl Pyramid {
    /// Saves level 0, the number of levels and the mapping to a file, the same on every machine.
    ///
    /// It is written beside the file, under another name, synced, and then renamed, so that at `path` there is the whole
    /// pyramid or what was there before.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::mipmap::Pyramid;
    ///
    /// let mut pyramid = Pyramid::empty([30, 40, 50])?.with_mapping([0.0, 0.0, -1.5], 0.05)?;
    /// pyramid.set_box([3, 4, 5], [10, 11, 12], true)?;
    /// let path = std::env::temp_dir().join(format!("grid-{}.pyramid", std::process::id()));
    /// pyramid.save(&path)?;
    /// assert_eq!(Pyramid::load(&path)?, pyramid);
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        save(path.as_ref(), |file, name| self.write_named(file, name))
    }

    /// Writes what [`Pyramid::save`] saves.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn write(&self, mut to: impl Write) -> Result<()> {
        self.write_named(&mut to, "writer")
    }

    fn write_named(&self, to: &mut dyn Write, name: &str) -> Result<()> {
        let mut words = std::borrow::Cow::Borrowed(self.tree[0].words());
        if cfg!(target_endian = "big") {
            swap(words.to_mut());
        }
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        let header = Header {
            frame: self.tree[0].frame,
            levels: self.levels(),
            mapping: self.mapping(),
            words: checksum(bytes),
        };
        let mut put = |bytes: &[u8]| to.write_all(bytes).map_err(|error| io_error(name, &error));
        put(&header.bytes())?;
        put(bytes)?;
        to.flush().map_err(|error| io_error(name, &error))
    }

    /// Loads a pyramid that was saved.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where the file cannot be read, [`Error::File`] with what is wrong where it does not hold a pyramid, whole and
    /// unchanged, [`Error::Allocation`], and [`Error::Environment`] from [`Level::current`]. What it holds is verified, so that a
    /// file that was made up is an error or a pyramid like any other.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let name = &path.as_ref().display().to_string();
        let (mut file, len) = open(path.as_ref(), name)?;
        load(&mut file, len, name)
    }

    /// [`Pyramid::load`] from a stream, which the pyramid must fill to its end.
    ///
    /// # Errors
    ///
    /// As [`Pyramid::load`].
    pub fn read(mut from: impl Read) -> Result<Self> {
        load(&mut from, None, "reader")
    }
}

fn load(from: &mut dyn Read, len: Option<u64>, name: &str) -> Result<Pyramid> {
    let fault = |fault: FileFault| Error::File { name: name.to_owned(), fault };
    let level = Level::current()?;
    let mut bytes = [0; HEADER];
    let read = fill(from, name, &mut bytes)?;
    let header = Header::read(&bytes[..read]).map_err(fault)?;
    if let Some(len) = len {
        check_length(len, header.total()).map_err(fault)?;
    }
    let count = header.frame.words();
    let mut words: Vec<u64> = Vec::new();
    while words.len() < count {
        // A header may say more than there is.
        let filled = words.len();
        let next = if len.is_some() { count } else { count.min(filled + filled.max(STEP)) };
        words.try_reserve_exact(next - filled).map_err(|_| Error::Allocation { bytes: 8 * (next - filled) })?;
        words.resize(next, 0);
        let read = fill(from, name, bytemuck::cast_slice_mut(&mut words[filled..]))?;
        if read < 8 * (next - filled) {
            let found = (HEADER + 8 * filled + read) as u64;
            return Err(fault(FileFault::Truncated { found, expected: header.total() }));
        }
    }
    if fill(from, name, &mut [0])? > 0 {
        return Err(fault(FileFault::Trailing { expected: header.total() }));
    }
    if checksum(bytemuck::cast_slice(&words)) != header.words {
        return Err(fault(FileFault::Checksum { section: "bits" }));
    }
    swap(&mut words);
    let bricks = Bricks::new(header.frame, words.into());
    if let Some(brick) = bricks.first_outside() {
        let what = format!("a bit of brick {brick:?} is outside of the grid");
        return Err(fault(FileFault::Structure { what }));
    }
    let mut pyramid = Pyramid::over(bricks, level, Tuning::default());
    pyramid.mapping = header.mapping;
    pyramid.grown(header.levels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(pyramid: &Pyramid) -> Vec<u8> {
        let mut bytes = Vec::new();
        pyramid.write(&mut bytes).unwrap();
        bytes
    }

    fn fault(bytes: &[u8]) -> FileFault {
        match Pyramid::read(bytes).unwrap_err() {
            Error::File { fault, .. } => fault,
            error => panic!("{error}"),
        }
    }

    #[test]
    fn every_byte_counts() {
        let mut pyramid = Pyramid::empty([5, 3, 9]).unwrap();
        pyramid.set([4, 2, 8]).unwrap();
        let bytes = file(&pyramid);
        assert_eq!(Pyramid::read(&bytes[..]).unwrap(), pyramid);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fault(&changed);
            assert!(matches!(fault(&bytes[..at]), FileFault::Truncated { .. } | FileFault::NotAPyramid));
        }
        assert_eq!(fault(b"\x89PBKD\r\n\x1a"), FileFault::NotAPyramid);
        assert_eq!(fault(&[&bytes[..], &[0]].concat()), FileFault::Trailing { expected: bytes.len() as u64 });
    }

    #[test]
    fn cells_beyond_the_edge_are_a_fault() {
        let mut header = Header { frame: Frame::new([5, 5, 5]).unwrap(), levels: 2, mapping: None, words: 0 };
        let words = [0u64, 0, 0, 0, 0, 0, 0, 1 << 63];
        header.words = checksum(bytemuck::cast_slice(&words));
        let bytes = [&header.bytes()[..], bytemuck::cast_slice(&words)].concat();
        let what = "a bit of brick [1, 1, 1] is outside of the grid".to_owned();
        assert_eq!(fault(&bytes), FileFault::Structure { what });
    }
}
