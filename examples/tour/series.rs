//! A rotating frame by Taylor steps: scans over its derivatives, and the gradient of where it ends.

use super::chapters::Story;
use super::check::Check;
use super::rotation::{self, DRIVE, ORDER, STEPS};
use pullback::Level;
use pullback::ndarray::array;
use std::error::Error;

pub fn chapter(story: &mut Story) -> Result<(), Box<dyn Error>> {
    let (table, level) = (&mut story.table, Some(Level::current()?));
    let sequence = format!("{STEPS} x ({ORDER}, 3, 3)");
    let exact = rotation::closed_form(DRIVE);
    let (_, end) = table.run("Taylor steps", sequence.clone(), level, || rotation::integrate(ORDER, DRIVE))?;
    table.check(Check::close("closed form", rotation::largest(&(end - &exact)), 1.0));

    let weights = array![[0.3, -1.0, 0.2], [0.8, 0.5, -0.7], [-0.4, 0.1, 0.9]];
    let slope = table.run("their adjoint", sequence, level, || rotation::gradient(&weights))?;
    // Five values of the closed form: what is left out is of the fourth order in the step.
    let step = 1e-2;
    let at = |steps: f64| (&weights * &rotation::closed_form(DRIVE + steps * step)).sum();
    let difference = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * step);
    table.check(Check::near("closed form's slope", slope - difference, 1.0, 1e-5));

    if story.pictures.wanted() {
        let errors = rotation::errors()?;
        story.pictures.file("taylor.svg", |file| rotation::draw(file, &errors))?;
    }
    Ok(())
}
