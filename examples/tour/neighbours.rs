//! Neighbours of every point, features gathered from them and averaged, and the gradient of a loss pushed back through both.

use super::chapters::{SEED, Story};
use super::check;
use super::features::{CHANNELS, features};
use super::random::Random;
use super::smooth::{self, Smooth};
use pullback::Level;
use pullback::kdtree::KdTree;
use pullback::ndarray::Array2;

const NEIGHBOURS: usize = 16;

/// Returns what was found.
pub fn chapter(points: &Array2<f64>, story: &mut Story) -> pullback::Result<String> {
    let table = &mut story.table;
    let (n, k, c) = (points.nrows(), NEIGHBOURS, CHANNELS);
    let (coordinates, pairs) = (format!("({n}, 3)"), format!("({n}, {k})"));
    let (narrow, wide) = (format!("({n}, {c})"), format!("({n}, {k}, {c})"));
    let level = Some(Level::current()?);

    let tree = table.run("k-d tree", coordinates.clone(), level, || KdTree::<f64, 3>::new(points.view()))?;
    let found = table.run("neighbours", format!("{coordinates} -> {pairs}"), level, || tree.knn_self(k))?;
    table.check(check::neighbours(points, k, found.distances.view(), found.indices.view()));

    let x = table.run("features", format!("{coordinates} -> {narrow}"), None, || features(points.view()));
    let smooth = table.run("gather, plan", pairs, level, || Smooth::new(found.indices.view()))?;
    let gathered = table.run("gather", format!("{narrow} -> {wide}"), level, || smooth.gather.forward(x.view()))?;
    table.check(check::gathered(x.view(), found.indices.view(), gathered.view()));
    let means = table.run("mean", format!("{wide} -> {narrow}"), None, || smooth.mean(gathered.view()));
    drop(gathered);

    // loss = |x - means|^2 / 2, so the gradient is the difference itself, once directly and once through the means.
    let (loss, difference) =
        table.run("loss", format!("{narrow} -> ()"), None, || (smooth::loss(x.view(), means.view()), &x - &means));
    let shapes = format!("{narrow} -> {wide}");
    let parts = table.run("mean, adjoint", shapes, None, || smooth.mean_adjoint(difference.view()));
    let shapes = format!("{wide} -> {narrow}");
    let through = table.run("gather, adjoint", shapes, level, || smooth.gather.adjoint(parts.view()))?;
    drop(parts);
    let mut random = Random::new(SEED);
    let y = x.mapv(|_| random.signed());
    table.check(check::identity(&means, &y, &x, &smooth.adjoint(y.view())?));

    let gradient = table.run("gradient", narrow, None, || &difference - &through);
    table.check(check::gradient(&x, &gradient, &mut random, |x| Ok(smooth::loss(x, smooth.forward(x)?.view())))?);

    let mut nearest = found.distances.column(0).to_vec();
    nearest.sort_unstable_by(f64::total_cmp);
    let norm = smooth::sum(gradient.iter().map(|g| g * g)).sqrt();
    Ok(format!(
        "nearest neighbour at {:.3e} (median), {:.3e} (largest); loss {loss:.6e}, gradient norm {norm:.6e}",
        nearest[n / 2],
        nearest[n - 1],
    ))
}
