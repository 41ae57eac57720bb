//! Writing a tree.

use super::arena::View;
use super::file::{ALIGNMENT, Section, Shape};
use crate::element::Element;
use crate::error::{Error, Result};
use crc32fast::Hasher;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that one task sums up.
const CHUNK: usize = 1 << 20;

/// The error of the operating system about a file or an argument.
pub(super) fn io_error(name: &str, error: &io::Error) -> Error {
    Error::Io { name: name.to_owned(), kind: error.kind(), message: error.to_string() }
}

/// The checksum of bytes, by all threads.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let of_chunk = |chunk: &[u8]| {
        let mut hasher = Hasher::new();
        hasher.update(chunk);
        hasher
    };
    let chunks: Vec<Hasher> = bytes.par_chunks(CHUNK).map(of_chunk).collect();
    let mut whole = Hasher::new();
    chunks.iter().for_each(|chunk| whole.combine(chunk));
    whole.finalize()
}

/// Turns numbers of `unit` bytes around where this machine has their bytes the other way than files.
pub(super) fn swap(bytes: &mut [u8], unit: usize) {
    bytes.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
}

/// The bytes of the box as a file has them.
fn box_of<T: Element>(tree: &View<'_, T>) -> Vec<T> {
    tree.torus.map_or_else(Vec::new, |torus| [&torus.origin[..], &torus.lengths].concat())
}

/// Writes a tree. `name` is what errors call `to`.
pub(super) fn write<T: Element>(tree: &View<'_, T>, absent: bool, to: &mut dyn Write, name: &str) -> Result<()> {
    let (shape, torus) = (Shape::of(tree, absent), box_of(tree));
    let sections: [Cow<'_, [u8]>; 5] = Section::ALL.map(|section| {
        let mut bytes = Cow::Borrowed(match section {
            Section::Box => bytemuck::cast_slice(&torus),
            Section::Coordinates => bytemuck::cast_slice(tree.coordinates),
            Section::Rows => bytemuck::cast_slice(tree.ids),
            Section::Nodes => bytemuck::cast_slice(tree.nodes),
            Section::Boxes => bytemuck::cast_slice(tree.boxes),
        });
        if cfg!(target_endian = "big") {
            swap(bytes.to_mut(), section.unit(&shape));
        }
        bytes
    });
    let zeros = [0; ALIGNMENT as usize];
    let fill = |bytes: &[u8]| &zeros[..bytes.len().next_multiple_of(zeros.len()) - bytes.len()];
    let checksums = sections.each_ref().map(|bytes| {
        let mut hasher = Hasher::new_with_initial(checksum(bytes));
        hasher.update(fill(bytes));
        hasher.finalize()
    });
    let mut put = |bytes: &[u8]| to.write_all(bytes).map_err(|error| io_error(name, &error));
    put(&shape.header(checksums))?;
    for bytes in &sections {
        put(bytes)?;
        put(fill(bytes))?;
    }
    to.flush().map_err(|error| io_error(name, &error))
}

/// A file that is removed unless it was renamed.
struct Temporary {
    path: PathBuf,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After renaming there is none, and where it cannot be removed there is an error already.
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes a tree to a file: beside it, under another name, which it then takes.
pub(super) fn save<T: Element>(tree: &View<'_, T>, absent: bool, path: &Path) -> Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = path.display().to_string();
    let failed = |error: io::Error| io_error(&name, &error);
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "the path does not end in a file's name");
    let mut temporary = OsString::from(".");
    temporary.push(path.file_name().ok_or_else(invalid).map_err(failed)?);
    temporary.push(format!(".{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    let temporary = path.with_file_name(temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary).map_err(failed)?;
    let temporary = Temporary { path: temporary };
    write(tree, absent, &mut file, &name)?;
    file.sync_all().map_err(failed)?;
    drop(file);
    fs::rename(&temporary.path, path).map_err(failed)
}
