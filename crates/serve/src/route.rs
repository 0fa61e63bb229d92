//! One route of the listener as data. The router is built from a list of routes, and tests iterate
//! over the same list, so that they cannot miss one.

use axum::Router;
use axum::handler::Handler;
use axum::routing::MethodRouter;

/// A path pattern with its methods and handlers.
pub(crate) struct Route<S> {
    path: String,
    methods: Vec<&'static str>,
    handlers: MethodRouter<S>,
}

impl<S: Clone + Send + Sync + 'static> Route<S> {
    pub(crate) fn at(path: impl Into<String>) -> Self {
        Self { path: path.into(), methods: Vec::new(), handlers: MethodRouter::new() }
    }

    pub(crate) fn get<H: Handler<T, S>, T: 'static>(mut self, handler: H) -> Self {
        self.methods.push("GET");
        self.handlers = self.handlers.get(handler);
        self
    }

    pub(crate) fn post<H: Handler<T, S>, T: 'static>(mut self, handler: H) -> Self {
        self.methods.push("POST");
        self.handlers = self.handlers.post(handler);
        self
    }

    pub(crate) fn delete<H: Handler<T, S>, T: 'static>(mut self, handler: H) -> Self {
        self.methods.push("DELETE");
        self.handlers = self.handlers.delete(handler);
        self
    }

    /// Adds an MCP endpoint. The endpoint checks the method itself; the listed methods are those of
    /// the protocol.
    pub(crate) fn mcp<H: Handler<T, S>, T: 'static>(mut self, handler: H) -> Self {
        self.methods.extend(["POST", "GET", "DELETE"]);
        self.handlers = axum::routing::any(handler);
        self
    }

    pub(crate) fn add_to(self, router: Router<S>) -> Router<S> {
        router.route(&self.path, self.handlers)
    }

    /// Returns every method of this route with the path pattern.
    pub(crate) fn requests(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.methods.iter().map(|method| (*method, self.path.clone()))
    }
}
