//! How a command ends when it does not simply end.

use crate::output::tell;
use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

const FAILED: u8 = 1;
const USAGE: u8 = 2;
/// What a shell reports for a program that SIGINT has ended.
const INTERRUPTED: u8 = 130;

/// Why a command did not do all it was asked to.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Whoever read the output has gone away, as `head` does: nothing is wrong.
    BrokenPipe,
    /// ctrl-C came before the work was done.
    Interrupted,
    /// All that there is to say is on standard error already.
    Reported,
    /// Something that the person at the terminal should read.
    Problem(Box<Problem>),
}

/// An error message in its parts.
#[derive(Debug, Default)]
pub(crate) struct Problem {
    /// One line: what did not work.
    what: String,
    /// Where exactly: lines shown as they are, such as a source line and a caret.
    excerpt: String,
    /// Why, outermost first.
    causes: Vec<String>,
    /// What to do about it.
    hint: Option<String>,
    /// Whether the command line is to blame.
    usage: bool,
}

impl Failure {
    /// A failure in one line.
    pub(crate) fn new(what: impl Into<String>) -> Failure {
        Failure::Problem(Box::new(Problem { what: what.into(), ..Problem::default() }))
    }

    /// A command line that makes no sense.
    pub(crate) fn usage(what: impl Into<String>) -> Failure {
        Failure::Problem(Box::new(Problem { what: what.into(), usage: true, ..Problem::default() }))
    }

    /// Adds an error and its sources as the causes.
    #[must_use]
    pub(crate) fn because(mut self, error: &dyn Error) -> Failure {
        if let Failure::Problem(problem) = &mut self {
            let mut next = Some(error);
            while let Some(error) = next {
                let text = error.to_string();
                // Many errors repeat their source in their own text.
                if !problem.causes.last().is_some_and(|last| last.contains(&text)) {
                    problem.causes.push(text);
                }
                next = error.source();
            }
        }
        self
    }

    /// Adds lines to show as they are.
    #[must_use]
    pub(crate) fn showing(mut self, excerpt: impl Into<String>) -> Failure {
        if let Failure::Problem(problem) = &mut self {
            problem.excerpt = excerpt.into();
        }
        self
    }

    /// Adds what can be done about it.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        if let Failure::Problem(problem) = &mut self {
            problem.hint = Some(hint.into());
        }
        self
    }

    /// A failure to write to standard output.
    pub(crate) fn output(error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::new("cannot write to standard output").because(error),
        }
    }

    /// Says on standard error what there is to say; the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Failure::BrokenPipe => ExitCode::SUCCESS,
            Failure::Interrupted => ExitCode::from(INTERRUPTED),
            Failure::Reported => ExitCode::from(FAILED),
            Failure::Problem(problem) => {
                tell(problem.render().trim_end());
                ExitCode::from(if problem.usage { USAGE } else { FAILED })
            }
        }
    }
}

impl Problem {
    fn render(&self) -> String {
        let mut text = format!("error: {}\n", self.what);
        for line in self.excerpt.lines() {
            let _ = writeln!(text, "{line}");
        }
        for cause in &self.causes {
            let _ = writeln!(text, "  cause: {cause}");
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "  hint: {hint}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_its_causes_once_and_then_the_hint() {
        let error = io::Error::other(io::Error::new(io::ErrorKind::NotFound, "no such file"));
        let Failure::Problem(problem) = Failure::new("cannot read x").because(&error).hint("create it") else {
            panic!()
        };
        assert_eq!(problem.render(), "error: cannot read x\n  cause: no such file\n  hint: create it\n");
    }
}
