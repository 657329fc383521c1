//! What was admitted a moment ago and a watch may not have shown yet.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Whoever is admitted is stored, or refused by somebody else, within the API server's time; a watch follows at once.
const KEPT: Duration = Duration::from_secs(3);
/// More than an API server writes in that time; the oldest go first.
const MOST: usize = 1024;

/// Cheap to clone; all clones know the same.
#[derive(Clone, Debug)]
pub(crate) struct Recent<T>(Arc<Mutex<VecDeque<Admitted<T>>>>);

#[derive(Clone, Debug)]
struct Admitted<T> {
    at: Instant,
    name: String,
    what: T,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone + PartialEq> Recent<T> {
    /// Shows `judge` what was admitted under other names, and where it finds nothing against it (`Ok`), remembers `what` as
    /// well: in one step, so that of two at the same time the second sees the first.
    pub(crate) fn admit<J>(
        &self,
        name: &str,
        what: Option<&T>,
        judge: impl FnOnce(&mut dyn Iterator<Item = (&str, &T)>) -> Result<J, J>,
    ) -> J {
        let mut recent = self.lock();
        let now = Instant::now();
        recent.retain(|admitted| now.duration_since(admitted.at) < KEPT);
        let mut others = recent.iter().filter(|one| one.name != name).map(|one| (&*one.name, &one.what));
        match (judge(&mut others), what) {
            (Ok(said), Some(what)) => {
                recent.retain(|admitted| admitted.name != name);
                if recent.len() >= MOST {
                    recent.pop_front();
                }
                recent.push_back(Admitted { at: now, name: name.to_owned(), what: what.clone() });
                said
            }
            (Ok(said) | Err(said), _) => said,
        }
    }

    /// The watch has shown this one as it was admitted, or that it is gone (`None`).
    pub(super) fn seen(&self, name: &str, what: Option<&T>) {
        self.lock().retain(|admitted| admitted.name != name || what.is_some_and(|what| *what != admitted.what));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Admitted<T>>> {
        // A panic elsewhere leaves whole entries behind, never half ones.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::ip_pool::Pool;
    use serde_json::json;

    fn pool(ips: &str) -> Pool {
        Pool::of(&json!({"subnet": "10.0.0.0/24", "ips": [ips]})).expect("a pool")
    }

    fn names(recent: &Recent<Pool>, but: &str) -> Vec<String> {
        recent.admit(but, None, |others| Err(others.map(|(name, _)| name.to_owned()).collect()))
    }

    #[tokio::test(start_paused = true)]
    async fn is_known_until_the_watch_shows_it_or_time_is_up() {
        let recent = Recent::default();
        let admit = |name: &str, pool: &Pool| recent.admit(name, Some(pool), |_| Ok(()));
        admit("a", &pool("10.0.0.1"));
        admit("b", &pool("10.0.0.2"));
        assert_eq!(names(&recent, "b"), ["a"], "nobody is beside himself");
        recent.seen("a", Some(&pool("10.0.0.9")));
        assert_eq!(names(&recent, ""), ["a", "b"], "what the watch shows is older");
        recent.seen("a", Some(&pool("10.0.0.1")));
        assert_eq!(names(&recent, ""), ["b"]);
        recent.seen("b", None);
        assert_eq!(names(&recent, ""), Vec::<String>::new());
        admit("c", &pool("10.0.0.3"));
        tokio::time::advance(KEPT).await;
        assert_eq!(names(&recent, ""), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_is_not_remembered_and_there_is_a_bound() {
        let recent = Recent::default();
        recent.admit("a", Some(&pool("10.0.0.1")), |_| Err(()));
        assert_eq!(names(&recent, ""), Vec::<String>::new());
        for n in 0..2 * MOST {
            recent.admit(&n.to_string(), Some(&pool("10.0.0.1")), |_| Ok(()));
        }
        assert_eq!(names(&recent, "").len(), MOST);
    }
}
