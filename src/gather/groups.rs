//! Indices in groups: `S` to a group, or as many as offsets say. Sums of the rows that a group names.

use super::kernels::Traffic;
use super::plan::{Index, OutOfRange, Plan, check_count};
use super::reduce::Spread;
use super::rows::{PREFETCH_BYTES, TILE_BYTES};
use super::terms::{Owner, Sources, Terms};
use crate::Real;
use crate::buffer::{Filled, Output, STREAM_BYTES};
use crate::error::{Error, Result};
use crate::layout::{Rows, check_shape};
use crate::parallel::{Cut, for_each_tile};
use ndarray::{ArrayView, ArrayView1, Dimension, Ix1, Ix2, Ix3};
use std::marker::PhantomData;
use std::num::NonZero;

/// How the indices of a batch fall into groups of neighbours, the same way in every batch.
pub(super) struct Groups {
    /// Where each group starts, and where the last one ends.
    pub(super) offsets: Vec<u32>,
    owners: Owners,
}

enum Owners {
    Even(u32),
    Listed(Vec<u32>),
}

impl Groups {
    /// `count` groups of `size` indices, whose product is the number of indices of a batch.
    fn even(count: usize, size: usize) -> Result<Self> {
        check_count("groups", count)?;
        check_count("indices a group", size)?;
        let mut offsets = reserved(count + 1)?;
        offsets.extend((0..=count).map(|group| (group * size) as u32));
        Ok(Self { offsets, owners: Owners::Even(size as u32) })
    }

    /// Groups of the entries that lie between `offsets`, which ascend from 0 to `entries`.
    pub(super) fn ragged<O: Index>(offsets: &ArrayView1<'_, O>, entries: usize) -> Result<Self> {
        let argument = "offsets";
        let Some(count) = offsets.len().checked_sub(1) else {
            return Err(Error::Shape { argument, found: vec![0], expected: vec![1] });
        };
        check_count("groups", count)?;
        check_count("entries", entries)?;
        let mut checked: Vec<u32> = reserved(count + 1)?;
        for (position, offset) in offsets.iter().enumerate() {
            let least = checked.last().map_or(0, |&before| before as usize);
            let most = if position == 0 { 0 } else { entries };
            match offset.row(most + 1) {
                Some(offset) if offset >= least => checked.push(offset as u32),
                _ => return Err(Error::Offset { argument, position, value: offset.value(), least, most }),
            }
        }
        if let Some(&value) = checked.last()
            && value as usize != entries
        {
            let value = i128::from(value);
            return Err(Error::Offset { argument, position: count, value, least: entries, most: entries });
        }
        Self::listed(checked)
    }

    /// Groups of these lengths, whose sum is `entries`.
    pub(super) fn of_lengths<I: Index>(lengths: &ArrayView1<'_, I>, entries: usize) -> Result<Self> {
        let argument = "lengths";
        check_count("groups", lengths.len())?;
        check_count("entries", entries)?;
        let mut offsets = reserved(lengths.len() + 1)?;
        offsets.push(0);
        let mut left = entries;
        for (position, length) in lengths.iter().enumerate() {
            let least = if position + 1 == lengths.len() { left } else { 0 };
            match length.row(left + 1) {
                Some(length) if length >= least => left -= length,
                _ => return Err(Error::Offset { argument, position, value: length.value(), least, most: left }),
            }
            offsets.push((entries - left) as u32);
        }
        if left > 0 {
            return Err(Error::Shape { argument, found: vec![0], expected: vec![1] });
        }
        Self::listed(offsets)
    }

    /// Groups between `offsets`, which ascend from 0.
    fn listed(offsets: Vec<u32>) -> Result<Self> {
        let mut owners = reserved(offsets.last().map_or(0, |&entries| entries as usize))?;
        for (group, ends) in (0..).zip(offsets.windows(2)) {
            owners.resize(ends[1] as usize, group);
        }
        Ok(Self { offsets, owners: Owners::Listed(owners) })
    }

    /// The number of groups.
    pub(super) fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The group of a position.
    pub(super) fn owner(&self) -> Owner<'_> {
        match &self.owners {
            // Groups of no positions own none.
            Owners::Even(size) => Owner::Even(NonZero::new(*size).unwrap_or(NonZero::<u32>::MIN)),
            Owners::Listed(owners) => Owner::Listed(owners),
        }
    }

    /// The offsets and, where they are listed, the group of every entry.
    pub(super) fn into_parts(self) -> (Vec<u32>, Vec<u32>) {
        match self.owners {
            Owners::Even(_) => (self.offsets, Vec::new()),
            Owners::Listed(owners) => (self.offsets, owners),
        }
    }
}

/// An empty list with room for `len` numbers.
pub(super) fn reserved(len: usize) -> Result<Vec<u32>> {
    let mut list = Vec::new();
    let bytes = len.saturating_mul(size_of::<u32>());
    list.try_reserve_exact(len).map_err(|_| Error::Allocation { bytes })?;
    Ok(list)
}

/// Checked indices in groups: what operators over neighbourhoods share. `D` is the dimension of the indices, `X` that of
/// the features and of the results.
pub(super) struct Grouped<D, X> {
    pub(super) plan: Plan,
    pub(super) groups: Groups,
    /// The shape of the indices.
    pub(super) shape: D,
    features: PhantomData<X>,
}

impl Grouped<Ix3, Ix3> {
    pub(super) fn batched<I: Index>(indices: &ArrayView<'_, I, Ix3>, rows: usize, policy: OutOfRange) -> Result<Self> {
        let (batches, count, size) = indices.dim();
        let plan = Plan::new("indices", indices, batches, rows, policy)?;
        Self::new(plan, Groups::even(count, size)?, indices.raw_dim())
    }
}

impl Grouped<Ix2, Ix2> {
    pub(super) fn unbatched<I: Index>(
        indices: &ArrayView<'_, I, Ix2>,
        rows: usize,
        policy: OutOfRange,
    ) -> Result<Self> {
        let (count, size) = indices.dim();
        let plan = Plan::new("indices", indices, 1, rows, policy)?;
        Self::new(plan, Groups::even(count, size)?, indices.raw_dim())
    }
}

impl Grouped<Ix1, Ix2> {
    pub(super) fn ragged<I: Index, O: Index>(
        indices: &ArrayView1<'_, I>,
        offsets: &ArrayView1<'_, O>,
        rows: usize,
        policy: OutOfRange,
    ) -> Result<Self> {
        let groups = Groups::ragged(offsets, indices.len())?;
        Self::new(Plan::new("indices", indices, 1, rows, policy)?, groups, indices.raw_dim())
    }
}

impl<D: Dimension, X: Dimension> Grouped<D, X> {
    fn new(plan: Plan, groups: Groups, shape: D) -> Result<Self> {
        Ok(Self { plan, groups, shape, features: PhantomData })
    }

    /// The shape of features with `channels`.
    pub(super) fn feature_shape(&self, channels: usize) -> Vec<usize> {
        self.plan.shape::<X>(self.plan.rows, channels)
    }

    /// The shape of results with `channels`.
    pub(super) fn result_shape(&self, channels: usize) -> Vec<usize> {
        self.plan.shape::<X>(self.groups.count(), channels)
    }

    /// Checks the shape of features and returns their channels.
    pub(super) fn feature_channels(&self, argument: &'static str, found: &[usize]) -> Result<usize> {
        self.plan.channels::<X>(argument, self.plan.rows, found)
    }

    /// Checks the shape of results and returns their channels.
    pub(super) fn result_channels(&self, argument: &'static str, found: &[usize]) -> Result<usize> {
        self.plan.channels::<X>(argument, self.groups.count(), found)
    }

    /// Checks that an array is as large as the indices.
    pub(super) fn check_as_indices(&self, argument: &'static str, found: &[usize]) -> Result<()> {
        check_shape(argument, found, self.shape.slice())
    }

    /// How results of `width` channels are cut, whose groups read all their rows.
    pub(super) fn cut<T>(&self, width: usize) -> Cut {
        let plan = &self.plan;
        let row_bytes = (width * size_of::<T>()).max(1);
        let per_group = (plan.per_batch / self.groups.count().max(1)).max(1);
        let tile = plan.tuning.tile.unwrap_or((TILE_BYTES / per_group).div_ceil(row_bytes).max(1));
        Cut { group: self.groups.count(), tile, width, parallel: plan.parallel::<T>(width) }
    }

    /// Whether rows of `x` are asked for ahead.
    pub(super) fn ahead<T>(&self, width: usize) -> bool {
        self.plan.tuning.prefetch.unwrap_or(self.plan.rows * width * size_of::<T>() > PREFETCH_BYTES)
    }

    /// The rows of `x` (B, N, `width`) that each group names, times their weights, summed into `y` (B, P, `width`).
    pub(super) fn sum<T: Real>(
        &self,
        x: &[T],
        width: usize,
        weights: Option<&[T]>,
        mean: bool,
        y: Output<'_, T>,
    ) -> Filled {
        let plan = &self.plan;
        let results = plan.batches * self.groups.count();
        if results == 0 || width == 0 {
            return Filled::NOTHING;
        }
        let row_bytes = width * size_of::<T>();
        let traffic = Traffic {
            stream: row_bytes.is_multiple_of(64) && plan.tuning.stream.unwrap_or(results * row_bytes > STREAM_BYTES),
            prefetch: self.ahead::<T>(width),
        };
        for_each_tile(y, results, &self.cut::<T>(width), &|batch, groups, tile| {
            let order = plan.batch(batch);
            let terms = match weights {
                None => Terms::Rows(order),
                Some(weights) => Terms::Weighted(order, &weights[batch * plan.per_batch..][..plan.per_batch]),
            };
            let offsets = &self.groups.offsets[groups.start..=groups.end];
            let rows = Sources { width, offsets, terms, product: false, mean };
            let x = &x[batch * plan.rows * width..][..plan.rows * width];
            T::fold_rows(plan.level, x, rows, 0..width, traffic, tile);
        })
    }

    /// The transpose of [`Grouped::sum`], not of the division of a mean.
    pub(super) fn spread<T: Real>(
        &self,
        grad_y: &[T],
        width: usize,
        weights: Option<&[T]>,
        grad_x: Output<'_, T>,
    ) -> Filled {
        let spread = Spread {
            plan: &self.plan,
            source: Rows::Dense(grad_y),
            groups: self.groups.count(),
            width,
            owner: self.groups.owner(),
            weights,
            mean: false,
            product: false,
        };
        spread.reduce(grad_x)
    }
}
