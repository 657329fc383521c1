//! Keeps the index: SpiderMultusConfigs and NetworkAttachmentDefinitions.

use super::config::Config;
use super::definition::Definition;
use super::index::Index;
use crate::metrics::Metrics;
use crate::resilient::{resilient, wanted};
use futures::{StreamExt, stream};
use k8s_api::crd::multus_config::SpiderMultusConfig;
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use runtime::Hold;
use std::collections::HashSet;
use std::convert::Infallible;
use tokio::sync::watch;

/// The resource of SpiderMultusConfigs.
pub(crate) fn configs() -> ApiResource {
    ApiResource::erase::<SpiderMultusConfig>(&())
}

/// The resource of NetworkAttachmentDefinitions, which Multus defines.
pub(crate) fn definitions() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition"),
        "network-attachment-definitions",
    )
}

/// One thing that a watch said, whichever it was.
enum Change {
    Config(Event<DynamicObject>),
    Definition(Event<DynamicObject>),
    /// Multus is not installed.
    NoDefinitions,
}

/// The latest index, and the task that keeps it. `synced` is released once both lists have been seen whole.
pub(crate) fn watch(
    client: Client,
    synced: Hold,
    metrics: Metrics,
) -> (watch::Receiver<Index>, impl Future<Output = Infallible>) {
    let (index, latest) = watch::channel(Index::default());
    (
        latest,
        run(
            client,
            Keeper { index, metrics, first: First { synced: Some(synced), configs: false, definitions: false } },
        ),
    )
}

async fn run(client: Client, mut keeper: Keeper) -> Infallible {
    let of_configs = Api::<DynamicObject>::all_with(client.clone(), &configs());
    let of_definitions = Api::<DynamicObject>::all_with(client, &definitions());
    let configs = resilient(watcher::watcher(of_configs, wanted()), "SpiderMultusConfigs");
    let definitions = resilient(watcher::watcher(of_definitions, wanted()), "NetworkAttachmentDefinitions");
    let configs = configs.filter_map(async |said| said.map(Change::Config));
    let definitions = definitions.map(|said| said.map_or(Change::NoDefinitions, Change::Definition));
    let mut changes = std::pin::pin!(stream::select(configs, definitions));
    let (mut listed_configs, mut listed_definitions) = (HashSet::new(), HashSet::new());
    loop {
        match changes.next().await {
            Some(Change::Config(event)) => keeper.config(event, &mut listed_configs),
            Some(Change::Definition(event)) => keeper.definition(event, &mut listed_definitions),
            Some(Change::NoDefinitions) => keeper.no_definitions(),
            // A watcher goes on for ever.
            None => std::future::pending().await,
        }
    }
}

/// The one that writes the index.
struct Keeper {
    index: watch::Sender<Index>,
    metrics: Metrics,
    first: First,
}

/// Which lists have been seen whole.
struct First {
    synced: Option<Hold>,
    configs: bool,
    definitions: bool,
}

impl Keeper {
    /// Another list has been seen whole.
    fn whole(&mut self, list: fn(&mut First) -> &mut bool) {
        *list(&mut self.first) = true;
        if self.first.configs
            && self.first.definitions
            && let Some(synced) = self.first.synced.take()
        {
            self.index.send_modify(|index| index.synced = true);
            synced.release();
        }
    }

    /// During a list the old entries stay in force; what the list does not show goes at its end.
    fn config(&mut self, event: Event<DynamicObject>, listed: &mut HashSet<(String, String)>) {
        match event {
            Event::Init => return listed.clear(),
            Event::InitApply(object) => {
                listed.insert(key(&object));
                return self.index.send_modify(|index| index.put_config(Config::of(&object)));
            }
            Event::InitDone => {
                self.index.send_modify(|index| index.keep_configs(listed));
                self.whole(|first| &mut first.configs);
            }
            Event::Apply(object) => self.index.send_modify(|index| index.put_config(Config::of(&object))),
            Event::Delete(object) => {
                let (namespace, name) = key(&object);
                self.index.send_modify(|index| index.remove_config(&namespace, &name));
            }
        }
        self.count();
    }

    /// As for configs.
    fn definition(&mut self, event: Event<DynamicObject>, listed: &mut HashSet<(String, String)>) {
        let put = |index: &mut Index, object: &DynamicObject| {
            let (namespace, name) = key(object);
            index.put_definition(namespace, name, Definition::of(object));
        };
        match event {
            Event::Init => return listed.clear(),
            Event::InitApply(object) => {
                listed.insert(key(&object));
                return self.index.send_modify(|index| put(index, &object));
            }
            Event::InitDone => {
                self.index.send_modify(|index| {
                    index.keep_definitions(listed);
                    index.multus = true;
                });
                self.whole(|first| &mut first.definitions);
            }
            Event::Apply(object) => self.index.send_modify(|index| put(index, &object)),
            Event::Delete(object) => {
                let (namespace, name) = key(&object);
                self.index.send_modify(|index| index.remove_definition(&namespace, &name));
            }
        }
        self.count();
    }

    /// Without their kind there are none.
    fn no_definitions(&mut self) {
        self.index.send_modify(|index| {
            index.keep_definitions(&HashSet::new());
            index.multus = false;
        });
        self.whole(|first| &mut first.definitions);
        self.count();
    }

    fn count(&self) {
        let (configs, definitions) = self.index.borrow().sizes();
        let gauge = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
        self.metrics.configs.set(gauge(configs));
        self.metrics.definitions.set(gauge(definitions));
    }
}

fn key(object: &impl ResourceExt) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}
