//! Questions to the API server: each has a deadline, lists come in pages, and what only a right is missing for is told apart
//! from what could not be asked at all.

mod connect;

use crate::fault::{Fault, NotSeen, Seen};
use crate::progress::Progress;
pub(crate) use connect::connect;
use kube::Client;
use kube::api::{GetParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::request;
use kube::core::{ObjectList, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::timeout;

/// Objects of one answer. The API server does not hold more than one such page for us.
const PAGE: u32 = 500;

/// One API server.
pub(crate) struct Server {
    client: Client,
    url: String,
    /// The namespace of the kubeconfig's context.
    namespace: String,
    deadline: Duration,
}

/// What came of one request that reached the server.
enum Answer<T> {
    Good(T),
    /// 404.
    Nothing,
    /// 403.
    Forbidden(String),
    /// Any other refusal.
    Status(u16, String),
}

/// What came of a write.
#[derive(Debug)]
pub(crate) enum Written<T> {
    Done(T),
    /// It is not there.
    Gone,
    /// Somebody else wrote first.
    Conflict,
    /// RBAC or a policy, in the server's words.
    Forbidden(String),
}

impl Server {
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        what: &str,
        request: Result<http::Request<Vec<u8>>, request::Error>,
    ) -> Result<Answer<T>, Fault> {
        let (server, what) = (self.url.clone(), what.to_owned());
        let request = match request {
            Ok(request) => request,
            Err(error) => return Err(Fault::Usage(format!("cannot {what}: {}", crate::fault::chain(&error)))),
        };
        match timeout(self.deadline, self.client.request::<T>(request)).await {
            Err(_) => Err(Fault::TooSlow { server, what, within: self.deadline }),
            Ok(Ok(found)) => Ok(Answer::Good(found)),
            Ok(Err(kube::Error::Api(status))) => Ok(match status.code {
                403 => Answer::Forbidden(status.message),
                404 => Answer::Nothing,
                code => Answer::Status(code, status.message),
            }),
            Ok(Err(error)) => Err(Fault::Unreachable { server, what, error: Box::new(error) }),
        }
    }

    fn refused(&self, what: &str, said: String) -> Fault {
        Fault::Refused { server: self.url.clone(), what: what.to_owned(), said }
    }

    /// One object, or that there is none. `path` is that of its kind.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, name: &str) -> Result<Seen<Option<T>>, Fault> {
        let what = format!("get {name} of {path}");
        match self.ask(&what, Request::new(path).get(name, &GetParams::default())).await? {
            Answer::Good(found) => Ok(Ok(Some(found))),
            Answer::Nothing => Ok(Ok(None)),
            Answer::Forbidden(said) => Ok(Err(NotSeen(said))),
            Answer::Status(_, said) => Err(self.refused(&what, said)),
        }
    }

    /// Shows every object of a kind to `take`, page by page. `fields` and `labels` are selectors; empty ones select all.
    pub(crate) async fn each<T: Clone + DeserializeOwned>(
        &self,
        path: &str,
        fields: &str,
        labels: &str,
        mut take: impl FnMut(T),
    ) -> Result<Seen<()>, Fault> {
        self.pages(path, fields, labels, Request::list, &mut take).await
    }

    /// The same, of the metadata alone.
    pub(crate) async fn each_metadata<T: Clone + DeserializeOwned>(
        &self,
        path: &str,
        fields: &str,
        mut take: impl FnMut(T),
    ) -> Result<Seen<()>, Fault> {
        self.pages(path, fields, "", Request::list_metadata, &mut take).await
    }

    async fn pages<T: Clone + DeserializeOwned>(
        &self,
        path: &str,
        fields: &str,
        labels: &str,
        asks: impl Fn(&Request, &ListParams) -> Result<http::Request<Vec<u8>>, request::Error>,
        take: &mut impl FnMut(T),
    ) -> Result<Seen<()>, Fault> {
        let what = format!("list {path}");
        let request = Request::new(path);
        let mut params = ListParams { limit: Some(PAGE), ..ListParams::default() };
        params.field_selector = Some(fields.to_owned()).filter(|text| !text.is_empty());
        params.label_selector = Some(labels.to_owned()).filter(|text| !text.is_empty());
        let (mut progress, mut count) = (Progress::new(&*what), 0);
        loop {
            let page: ObjectList<T> = match self.ask(&what, asks(&request, &params)).await? {
                Answer::Good(page) => page,
                Answer::Nothing => return Ok(Err(NotSeen(format!("the cluster has nothing at {path}")))),
                Answer::Forbidden(said) => return Ok(Err(NotSeen(said))),
                Answer::Status(410, _) => {
                    return Err(self.refused(&what, "the list grew too old while it was read; ask again".to_owned()));
                }
                Answer::Status(_, said) => return Err(self.refused(&what, said)),
            };
            count += page.items.len();
            VecDeque::from(page.items).into_iter().for_each(&mut *take);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => return Ok(Ok(())),
            }
            progress.at(&format!("{count} so far"));
        }
    }

    /// All objects of a kind.
    pub(crate) async fn list<T: Clone + DeserializeOwned>(
        &self,
        path: &str,
        fields: &str,
        labels: &str,
    ) -> Result<Seen<Vec<T>>, Fault> {
        let mut all = Vec::new();
        Ok(self.each(path, fields, labels, |one| all.push(one)).await?.map(|()| all))
    }

    /// What a store's question came to.
    pub(crate) fn failed(&self, what: &str, error: store::StoreError) -> Fault {
        Fault::Store { server: self.url.clone(), what: what.to_owned(), error }
    }

    /// What the command is about: without it there is no answer.
    pub(crate) fn needed<T>(&self, what: &str, seen: Seen<T>) -> Result<T, Fault> {
        seen.map_err(|NotSeen(said)| self.refused(what, said))
    }

    /// A JSON merge patch.
    pub(crate) async fn merge<T: DeserializeOwned>(
        &self,
        path: &str,
        name: &str,
        change: &serde_json::Value,
    ) -> Result<Written<T>, Fault> {
        let what = format!("patch {name} of {path}");
        let request = Request::new(path).patch(name, &PatchParams::default(), &Patch::Merge(change));
        match self.ask(&what, request).await? {
            Answer::Good(found) => Ok(Written::Done(found)),
            Answer::Nothing => Ok(Written::Gone),
            Answer::Forbidden(said) => Ok(Written::Forbidden(said)),
            Answer::Status(409, _) => Ok(Written::Conflict),
            Answer::Status(_, said) => Err(self.refused(&what, said)),
        }
    }

    /// Creates what only asks something.
    pub(crate) async fn review<T: DeserializeOwned + Serialize>(&self, path: &str, asked: &T) -> Result<T, Fault> {
        let what = format!("create {path}");
        let body = serde_json::to_vec(asked).map_err(|error| Fault::Usage(error.to_string()))?;
        match self.ask(&what, Request::new(path).create(&PostParams::default(), body)).await? {
            Answer::Good(found) => Ok(found),
            Answer::Nothing => Err(self.refused(&what, "it has no such kind".to_owned())),
            Answer::Forbidden(said) | Answer::Status(_, said) => Err(self.refused(&what, said)),
        }
    }
}
