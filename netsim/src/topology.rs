//! The shapes of networks: which brokers there are and which of them are linked.

use crate::{Random, ScenarioError};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How the links are laid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Each broker is linked to the next.
    Line,
    /// A line whose ends are linked.
    Ring,
    /// The first broker is linked to all others.
    Star,
    /// Each broker has up to [`Topology::branching`] brokers below it.
    Tree,
    /// Each broker is linked to each.
    Clique,
    /// A random tree, and random links more until brokers have [`Topology::degree`] links on average. Connected.
    Random,
    /// Only what [`Topology::links`] names.
    #[default]
    Links,
}

/// Brokers and links of a network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// How the links are laid.
    #[serde(default)]
    pub shape: Shape,
    /// How many brokers there are; may be left out if `names` says it.
    #[serde(default)]
    pub brokers: usize,
    /// The brokers' names; left out: `b00`, `b01`, …
    #[serde(default)]
    pub names: Vec<String>,
    /// Links of a broker on average, for [`Shape::Random`].
    #[serde(default = "default_degree")]
    pub degree: f64,
    /// Brokers below each, for [`Shape::Tree`].
    #[serde(default = "default_branching")]
    pub branching: usize,
    /// Links by the names of their ends, besides those of the shape.
    #[serde(default)]
    pub links: Vec<[String; 2]>,
}

fn default_degree() -> f64 {
    3.0
}

fn default_branching() -> usize {
    2
}

/// More brokers than this make no run that anybody waits for.
const MOST_BROKERS: usize = 10_000;

impl Topology {
    /// A network of a given shape with names made up.
    pub fn new(shape: Shape, brokers: usize) -> Topology {
        Topology {
            shape,
            brokers,
            names: Vec::new(),
            degree: default_degree(),
            branching: default_branching(),
            links: Vec::new(),
        }
    }

    /// The names of the brokers, in order.
    ///
    /// # Errors
    /// If there is none or there are too many, a name occurs twice, or `brokers` and `names` differ.
    pub fn names(&self) -> Result<Vec<String>, ScenarioError> {
        let brokers = if self.brokers == 0 { self.names.len() } else { self.brokers };
        if brokers == 0 || brokers > MOST_BROKERS {
            return Err(ScenarioError::Brokers { brokers, limit: MOST_BROKERS });
        }
        if self.names.is_empty() {
            let width = (brokers - 1).to_string().len().max(2);
            return Ok((0..brokers).map(|number| format!("b{number:0width$}")).collect());
        }
        if self.names.len() != brokers {
            return Err(ScenarioError::Names { names: self.names.len(), brokers });
        }
        let mut seen = BTreeSet::new();
        for name in &self.names {
            if !seen.insert(name) {
                return Err(ScenarioError::NameTwice { name: name.clone() });
            }
        }
        Ok(self.names.clone())
    }

    /// The links as pairs of places in [`Topology::names`], each pair once.
    ///
    /// # Errors
    /// As [`Topology::names`], and if a link names an unknown broker, or one broker at both ends.
    pub fn edges(&self, random: &mut Random) -> Result<Vec<[usize; 2]>, ScenarioError> {
        let names = self.names()?;
        let brokers = names.len();
        let mut edges = Edges::default();
        match self.shape {
            Shape::Line => (1..brokers).for_each(|to| edges.add(to - 1, to)),
            Shape::Ring => (1..=brokers).for_each(|to| edges.add(to - 1, to % brokers)),
            Shape::Star => (1..brokers).for_each(|to| edges.add(0, to)),
            Shape::Tree => (1..brokers).for_each(|to| edges.add((to - 1) / self.branching.max(1), to)),
            Shape::Clique => (0..brokers).for_each(|from| (0..from).for_each(|to| edges.add(to, from))),
            Shape::Random => self.add_random(brokers, random, &mut edges),
            Shape::Links => {}
        }
        for [from, to] in &self.links {
            let place = |name: &String| {
                let known = names.iter().position(|known| known == name);
                known.ok_or_else(|| ScenarioError::UnknownBroker { name: name.clone() })
            };
            let (from, to) = (place(from)?, place(to)?);
            if from == to {
                return Err(ScenarioError::LinkToItself { name: names[from].clone() });
            }
            edges.add(from, to);
        }
        Ok(edges.list)
    }

    fn add_random(&self, brokers: usize, random: &mut Random, edges: &mut Edges) {
        for to in 1..brokers {
            edges.add(random.random_range(0..to), to);
        }
        let possible = brokers * (brokers - 1) / 2;
        let wanted = ((brokers as f64 * self.degree / 2.0).round() as usize).min(possible);
        while edges.list.len() < wanted {
            edges.add(random.random_range(0..brokers), random.random_range(0..brokers));
        }
    }
}

/// Links in the order they were added, none twice and none from a broker to itself.
#[derive(Default)]
struct Edges {
    list: Vec<[usize; 2]>,
    seen: BTreeSet<[usize; 2]>,
}

impl Edges {
    fn add(&mut self, from: usize, to: usize) {
        let pair = [from.min(to), from.max(to)];
        if from != to && self.seen.insert(pair) {
            self.list.push(pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded;

    fn count(shape: Shape, brokers: usize) -> usize {
        Topology::new(shape, brokers).edges(&mut seeded(7, "topology")).expect("a good topology").len()
    }

    #[test]
    fn shapes_have_their_number_of_links() {
        assert_eq!(count(Shape::Line, 6), 5);
        assert_eq!(count(Shape::Ring, 6), 6);
        assert_eq!(count(Shape::Ring, 2), 1);
        assert_eq!(count(Shape::Star, 6), 5);
        assert_eq!(count(Shape::Tree, 7), 6);
        assert_eq!(count(Shape::Clique, 6), 15);
        assert_eq!(count(Shape::Random, 30), 45);
        assert_eq!(count(Shape::Random, 3), 3);
    }

    #[test]
    fn bad_topologies_are_refused() {
        let edges = |topology: Topology| topology.edges(&mut seeded(7, "topology"));
        let link =
            |from: &str, to: &str| Topology { links: vec![[from.into(), to.into()]], ..Topology::new(Shape::Links, 2) };
        assert_eq!(edges(link("b00", "b01")).expect("a link"), [[0, 1]]);
        assert!(matches!(edges(link("b00", "b07")), Err(ScenarioError::UnknownBroker { .. })));
        assert!(matches!(edges(link("b00", "b00")), Err(ScenarioError::LinkToItself { .. })));
        assert!(matches!(edges(Topology::new(Shape::Line, 0)), Err(ScenarioError::Brokers { .. })));
        let twice = Topology { names: vec!["x".into(), "x".into()], ..Topology::new(Shape::Line, 2) };
        assert!(matches!(edges(twice), Err(ScenarioError::NameTwice { .. })));
        let few = Topology { names: vec!["x".into()], ..Topology::new(Shape::Line, 2) };
        assert!(matches!(edges(few), Err(ScenarioError::Names { .. })));
    }
}
