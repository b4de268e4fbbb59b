import HTTPServing

/// The one place of `/metrics`: what is answered there, with OpenMetrics' content type.
///
/// PLUG: the module that writes OpenMetrics is called here, on a thread of the pool that reads, with its connection to
/// torpord. Nothing else has to change: the route, the access and the headers are there.
func metrics(_ link: Link) -> HTTPResponse {
    HTTPResponse(501, "this torpor-web has no metrics")
}
