//! Saving and loading as users see it.

use super::arena::MAX_DIMS;
use super::tree::{KdTree, KdTreeDyn};
use crate::Real;
use crate::error::{Error, Result};
use std::io::{Read, Write};
use std::path::Path;

impl<T: Real> KdTreeDyn<T> {
    /// Saves the tree to a file: the same on every machine, about as large as the tree in memory.
    ///
    /// It is written beside the file, under another name, synced, and then renamed, so that at `path` there is the whole
    /// tree or what was there before.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::kdtree::KdTree;
    /// use pullback::ndarray::array;
    ///
    /// let points = array![[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]];
    /// let tree = KdTree::<f64, 2>::new(points.view())?;
    /// let path = std::env::temp_dir().join(format!("points-{}.tree", std::process::id()));
    /// tree.save(&path)?;
    /// let loaded = KdTree::<f64, 2>::load(&path)?;
    /// assert_eq!(loaded.knn_self(1)?.indices, tree.knn_self(1)?.indices);
    ///
    /// // What it holds is checked: another type of element is an error.
    /// let error = KdTree::<f32, 2>::load(&path).err().unwrap();
    /// assert!(error.to_string().ends_with("elements are f64, expected f32"));
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        T::save(&self.arena, self.absent, path.as_ref())
    }

    /// Writes what [`KdTreeDyn::save`] saves.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn write(&self, mut to: impl Write) -> Result<()> {
        T::write(&self.arena, self.absent, &mut to)
    }

    /// Loads a tree that was saved, of any number of dimensions, into memory. Its searches give the same bits, at any level.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where the file cannot be read, [`Error::File`] with what is wrong where it does not hold a tree of
    /// this type, whole and unchanged, [`Error::Allocation`], and [`Error::Environment`] from
    /// [`Level::current`](crate::Level::current). Everything that a search relies on is verified, so that a file that was
    /// made up is an error too.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        T::load(path.as_ref(), None)
    }

    /// [`KdTreeDyn::load`] from a stream, which the tree must fill to its end.
    ///
    /// # Errors
    ///
    /// As [`KdTreeDyn::load`].
    pub fn read(mut from: impl Read) -> Result<Self> {
        T::read(&mut from, None)
    }

    /// Maps a tree that was saved: it is verified as by [`KdTreeDyn::load`], but stays in the file, and in the memory that
    /// the operating system shares between all who use the file. Searches give the same bits.
    ///
    /// The file should not be changed while it is mapped, other than by [`KdTreeDyn::save`], which replaces it and leaves
    /// the map as it is. Where its bytes are changed in place, searches may return wrong neighbours, row numbers that no
    /// point has, or [`Error::File`], but do not panic and do not leave their memory. Where it is cut short, the operating
    /// system ends the process that reads beyond its end (SIGBUS on Unix).
    ///
    /// # Errors
    ///
    /// As [`KdTreeDyn::load`]. [`Error::Io`] on machines that are big-endian.
    #[cfg(feature = "mmap")]
    pub fn map(path: impl AsRef<Path>) -> Result<Self> {
        T::map(path.as_ref(), None)
    }
}

impl<T: Real, const D: usize> KdTree<T, D> {
    /// [`KdTreeDyn::load`] of a tree of D dimensions.
    ///
    /// # Errors
    ///
    /// As [`KdTreeDyn::load`], where another number of dimensions is an [`Error::File`], too, and
    /// [`Error::Dimensions`] where D is not 1 to 16.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        T::load(path.as_ref(), dims::<D>()?).map(Self::new_over)
    }

    /// [`KdTreeDyn::read`] of a tree of D dimensions.
    ///
    /// # Errors
    ///
    /// As [`KdTree::load`].
    pub fn read(mut from: impl Read) -> Result<Self> {
        T::read(&mut from, dims::<D>()?).map(Self::new_over)
    }

    /// [`KdTreeDyn::map`] of a tree of D dimensions.
    ///
    /// # Errors
    ///
    /// As [`KdTree::load`].
    #[cfg(feature = "mmap")]
    pub fn map(path: impl AsRef<Path>) -> Result<Self> {
        T::map(path.as_ref(), dims::<D>()?).map(Self::new_over)
    }
}

fn dims<const D: usize>() -> Result<Option<usize>> {
    if (1..=MAX_DIMS).contains(&D) { Ok(Some(D)) } else { Err(Error::Dimensions { found: D, most: MAX_DIMS }) }
}
