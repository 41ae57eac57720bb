//! Files: written whole or not at all, with checksums.

use crate::error::{Error, Result};
use crc32fast::Hasher;
use rayon::prelude::*;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that one task sums up.
const CHUNK: usize = 1 << 20;

/// The error of the operating system about a file or an argument.
pub(crate) fn io_error(name: &str, error: &io::Error) -> Error {
    Error::Io { name: name.to_owned(), kind: error.kind(), message: error.to_string() }
}

/// The CRC-32 of bytes, by all threads.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
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

/// Reads into all of `bytes`, or as far as there is something to read. Returns how many were read.
pub(crate) fn fill(from: &mut dyn Read, name: &str, bytes: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match from.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(io_error(name, &error)),
        }
    }
    Ok(filled)
}

/// Opens a file to read it, with its length where it has one: pipes and the like do not know how long they are.
pub(crate) fn open(path: &Path, name: &str) -> Result<(File, Option<u64>)> {
    let open = || {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        Ok((file, metadata.is_file().then_some(metadata.len())))
    };
    open().map_err(|error| io_error(name, &error))
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

/// Has a file written by `write`, which is told what errors call it: beside it, under another name, which it then takes.
pub(crate) fn save(path: &Path, write: impl FnOnce(&mut File, &str) -> Result<()>) -> Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = path.display().to_string();
    let failed = |error: io::Error| io_error(&name, &error);
    let invalid = || io::Error::new(ErrorKind::InvalidInput, "the path does not end in a file's name");
    let mut temporary = OsString::from(".");
    temporary.push(path.file_name().ok_or_else(invalid).map_err(failed)?);
    temporary.push(format!(".{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    let temporary = path.with_file_name(temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary).map_err(failed)?;
    let temporary = Temporary { path: temporary };
    write(&mut file, &name)?;
    file.sync_all().map_err(failed)?;
    drop(file);
    fs::rename(&temporary.path, path).map_err(failed)
}
