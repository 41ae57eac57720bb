//! Files of a test, and all ways to open a saved tree.

use super::values::Value;
use pullback::Result;
use pullback::kdtree::KdTreeDyn;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory of its own for a test, removed behind it.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("pullback-saved-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let directory = env::temp_dir().join(name);
        fs::create_dir(&directory).expect("a new directory");
        Self(directory)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The names of the files in it.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("a directory");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("the directory is still there");
    }
}

/// All ways to open a file.
pub fn opened<T: Value>(path: &Path) -> Vec<Result<KdTreeDyn<T>>> {
    vec![
        KdTreeDyn::load(path),
        KdTreeDyn::read(fs::File::open(path).expect("the file is there")),
        #[cfg(feature = "mmap")]
        KdTreeDyn::map(path),
    ]
}
