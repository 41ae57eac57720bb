//! Where pictures go, if they go anywhere.

use super::picture;
use pullback::ndarray::ArrayView3;
use std::error::Error;
use std::fs::create_dir_all;
use std::path::{Path, PathBuf};

/// A directory for pictures, or none.
pub struct Pictures(Option<PathBuf>);

impl Pictures {
    /// Makes the directory, if there is none.
    pub fn new(directory: Option<PathBuf>) -> Result<Self, String> {
        if let Some(directory) = &directory {
            create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        }
        Ok(Self(directory))
    }

    /// Whether somebody will look at them.
    pub fn wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Writes a PNG file.
    pub fn write(&self, name: &str, picture: ArrayView3<'_, f32>) -> Result<(), Box<dyn Error>> {
        self.file(name, |path| picture::write(path, picture))
    }

    /// Has a file written, if pictures are wanted. An error names it.
    pub fn file(
        &self,
        name: &str,
        write: impl FnOnce(&Path) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        let Some(directory) = &self.0 else { return Ok(()) };
        let path = directory.join(name);
        write(&path).map_err(|error| format!("{}: {error}", path.display()).into())
    }
}
