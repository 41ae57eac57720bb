//! A problem for the gradients of distances, from a few small numbers, and its check against plain loops.

use super::distance_gradients::DistanceGradients;
use super::groups::zeros;
use super::limits::Limits;
use super::random::Random;
use super::reduction_case::{assert_flat, check_into, flat};
use super::search_case::SearchCase;
use super::space::Space;
use super::strides::{Strided, Strides};
use super::threads;
use super::values::{Value, Values};
use ndarray::{Array2, Ix2};
use pullback::Level;
use pullback::kdtree::{KdTreeDyn, Search};

/// Which rows of points the indices name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Named {
    /// Those that a search finds.
    Found,
    /// Any, with padding between, and the same ones again and again.
    Any,
    /// Half of them the same.
    Hub,
}

impl Named {
    pub const ALL: [Self; 3] = [Self::Found, Self::Any, Self::Hub];
}

/// The strides of every array.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdjointLayout {
    pub queries: Strides,
    pub indices: Strides,
    pub grad_distances: Strides,
    pub grad_queries: Strides,
    pub grad_points: Strides,
}

/// A problem: where and how neighbours are found, and what is differentiated.
#[derive(Clone, Debug)]
pub struct AdjointCase {
    pub search: SearchCase,
    pub named: Named,
    pub layout: AdjointLayout,
}

impl Default for AdjointCase {
    fn default() -> Self {
        Self { search: SearchCase::default(), named: Named::Found, layout: AdjointLayout::default() }
    }
}

/// A tree in some space, and queries.
pub struct Scene<T> {
    pub space: Space<T>,
    pub points: Array2<T>,
    pub queries: Array2<T>,
    pub tree: KdTreeDyn<T>,
    pub random: Random,
}

impl SearchCase {
    /// Rows that are not finite, if there are any, are absent.
    pub fn scene<T: Value>(&self, level: Level) -> Scene<T> {
        let (case, mut random) = (&self.case, Random::new(self.case.seed));
        let mut points: Array2<T> = case.cloud.points(case.points, case.dims, &mut random);
        let space = self.periodic.space(&points, &mut random);
        space.scatter(&mut points, &mut random);
        let mut queries = case.cloud.queries(&points, case.queries, &mut random);
        space.scatter(&mut queries, &mut random);
        case.punch(&mut points, &mut random);
        case.punch(&mut queries, &mut random);
        let builder = space.builder().leaf_size(case.leaf).non_finite_is_absent();
        let tree = builder.build_dyn(points.view()).and_then(|tree| tree.with_level(level));
        let tree = tree.expect("the points are good").with_tuning(case.tuning);
        Scene { space, points, queries, tree, random }
    }

    /// Bounds on the distances of the neighbours of queries, one or one a query, or none.
    pub fn bounds<T: Value>(&self, tree: &KdTreeDyn<T>, queries: &Array2<T>, random: &mut Random) -> Limits<T> {
        let Some(limit) = self.bound else { return Limits::None };
        let search = tree.search().metric(self.metric);
        let nearest = search.knn(queries.view(), self.case.k).expect("the queries are good").distances;
        let mut distances: Vec<Vec<T>> = nearest.outer_iter().map(|row| row.to_vec()).collect();
        distances.iter_mut().for_each(|row| row.retain(|distance| distance.is_finite()));
        Limits::draw(limit, self.each, &distances, random)
    }
}

/// `array` in memory of other strides; where they broadcast, some of its elements.
pub fn strided<T: Copy>(array: &Array2<T>, strides: Strides, blank: T) -> Strided<T, Ix2> {
    if strides.broadcast != 0 {
        let mut cells = array.iter().copied().cycle();
        return Strided::new(array.raw_dim(), strides, || cells.next().unwrap_or(blank));
    }
    let mut strided = Strided::new(array.raw_dim(), strides, || blank);
    strided.view_mut().assign(array);
    strided
}

impl AdjointCase {
    pub fn check(&self, level: Level) {
        threads::with(self.search.case.threads, || match self.search.case.double {
            false => self.check_element::<f32>(level),
            true => self.check_element::<f64>(level),
        });
    }

    fn check_element<T: Value>(&self, level: Level) {
        let Scene { space, points, queries, tree, mut random } = self.search.scene::<T>(level);
        let queries = strided(&queries, self.layout.queries, T::zero());
        let owned = queries.view().to_owned();
        let bounds = self.search.bounds(&tree, &owned, &mut random);
        let search = tree.search().metric(self.search.metric);
        let search = bounds.per_query().map_or(search, |bounds| search.within(bounds));
        let search = if self.search.squared { search.squared() } else { search };
        let k = self.search.case.k;
        let of_queries = search.knn(queries.view(), k).expect("the queries are good").indices;
        let of_queries = self.renamed(of_queries, &points, &mut random);
        let reference = DistanceGradients::new(space, self.search.metric, self.search.squared, points.view());
        self.check_knn(&search, &reference, &queries, &of_queries, &mut random);

        let of_itself = tree.search().metric(self.search.metric).knn_self(k).expect("the size is small").indices;
        let mut of_itself = self.renamed(of_itself, &points, &mut random);
        for (mut row, point) in of_itself.outer_iter_mut().zip(points.outer_iter()) {
            if point.iter().any(|x| !x.is_finite()) {
                row.fill(points.nrows() as u32);
            }
        }
        self.check_knn_self(&search, &reference, &of_itself, &mut random);
    }

    /// The indices that the problem is about, in place of those that were found.
    fn renamed<T: Value>(&self, found: Array2<u32>, points: &Array2<T>, random: &mut Random) -> Array2<u32> {
        let finite = |row: &u32| points.row(*row as usize).iter().all(|x| x.is_finite());
        let padding = points.nrows() as u32;
        let present: Vec<u32> = (0..padding).filter(finite).collect();
        let draw = |random: &mut Random| match random.below(if self.named == Named::Hub { 2 } else { 4 }) {
            0 if self.named == Named::Hub => present[present.len() / 2],
            0 => padding,
            _ => random.one_of(&present),
        };
        match self.named {
            Named::Found => found,
            _ if present.is_empty() => found,
            _ => found.mapv(|_| draw(random)),
        }
    }

    /// Gradients of magnitudes far apart, and NaN where there is no neighbour.
    fn grads<T: Value>(&self, indices: &Strided<u32, Ix2>, rows: usize, random: &mut Random) -> Strided<T, Ix2> {
        let mut draw = || Values::Spread.draw(random);
        let mut grads = Strided::new(indices.view().raw_dim(), self.layout.grad_distances, &mut draw);
        if self.layout.grad_distances.broadcast == 0 {
            grads.view_mut().zip_mut_with(&indices.view(), |grad, &index| {
                if index as usize == rows {
                    *grad = T::nan();
                }
            });
        }
        grads
    }

    fn check_knn<T: Value>(
        &self,
        search: &Search<'_, T>,
        reference: &DistanceGradients<T>,
        queries: &Strided<T, Ix2>,
        indices: &Array2<u32>,
        random: &mut Random,
    ) {
        let (layout, case) = (self.layout, &self.search.case);
        let indices = strided(indices, layout.indices, case.points as u32);
        let grads = self.grads::<T>(&indices, case.points, random);
        let (queries, indices, grads) = (queries.view(), indices.view(), grads.view());
        let shapes = [[case.queries, case.dims], [case.points, case.dims]];
        let [q, p] = [(shapes[0], layout.grad_queries), (shapes[1], layout.grad_points)]
            .map(|([rows, axes], strides)| Strided::new(Ix2(rows, axes), strides, || Values::Spread.draw::<T>(random)));

        let zeros = shapes.map(zeros);
        let expected = reference.knn(queries, indices, grads, [&zeros[0], &zeros[1]]);
        let found = search.knn_adjoint(grads, queries, indices).expect("the indices are good");
        assert_flat("grad_queries", &found.grad_queries, &expected[0]);
        assert_flat("grad_points", &found.grad_points, &expected[1]);
        check_into("grad_queries of knn_adjoint_into", &q, &expected[0], |q| {
            check_into("grad_points of knn_adjoint_into", &p, &expected[1], |p| {
                search.knn_adjoint_into(grads, queries, indices, q, p)
            });
            Ok(())
        });
        let starts = [flat(&q.view(), shapes[0]), flat(&p.view(), shapes[1])];
        let expected = reference.knn(queries, indices, grads, [&starts[0], &starts[1]]);
        check_into("grad_queries of knn_adjoint_add", &q, &expected[0], |q| {
            check_into("grad_points of knn_adjoint_add", &p, &expected[1], |p| {
                search.knn_adjoint_add(grads, queries, indices, q, p)
            });
            Ok(())
        });
    }

    fn check_knn_self<T: Value>(
        &self,
        search: &Search<'_, T>,
        reference: &DistanceGradients<T>,
        indices: &Array2<u32>,
        random: &mut Random,
    ) {
        let (layout, case) = (self.layout, &self.search.case);
        // Rows of absent points would be broadcast to others.
        let strides = if case.holes > 0 { Strides { broadcast: 0, ..layout.indices } } else { layout.indices };
        let indices = strided(indices, strides, case.points as u32);
        let grads = self.grads::<T>(&indices, case.points, random);
        let (indices, grads, shape) = (indices.view(), grads.view(), [case.points, case.dims]);
        let start = Strided::new(Ix2(shape[0], shape[1]), layout.grad_points, || Values::Spread.draw::<T>(random));

        let expected = reference.knn_self(indices, grads, &zeros(shape));
        let found = search.knn_self_adjoint(grads, indices).expect("the indices are good");
        assert_flat("gradient of knn_self", &found, &expected);
        check_into("knn_self_adjoint_into", &start, &expected, |p| search.knn_self_adjoint_into(grads, indices, p));
        let expected = reference.knn_self(indices, grads, &flat(&start.view(), shape));
        check_into("knn_self_adjoint_add", &start, &expected, |p| search.knn_self_adjoint_add(grads, indices, p));
    }
}
