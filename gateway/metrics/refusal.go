package metrics

// The reasons of refusals. A refusal is a request to send a message that is
// answered with an error and sends nothing. The reasons are the values of a
// metric's label.
const (
	RefusalBadRequest    = "bad_request"            // 400
	RefusalStateless     = "stateless_off"          // 403, a message without a key
	RefusalOrigin        = "cross_origin"           // 403, a page of another site
	RefusalForbidden     = "forbidden"              // any other 401 or 403
	RefusalUnknownKey    = "unknown_key"            // 404
	RefusalMethod        = "method_not_allowed"     // 405
	RefusalTimeout       = "request_timeout"        // 408
	RefusalTooLarge      = "too_large"              // 413
	RefusalMediaType     = "unsupported_media_type" // 415
	RefusalNoDestination = "no_destination"         // 424, no destination is chosen
	RefusalOverloaded    = "overloaded"             // 503
	RefusalStorage       = "no_disk_space"          // 507
	RefusalLoop          = "loop"                   // 508
	RefusalError         = "internal_error"         // 500
)

// AllRefusalReasons are the values of the metric's label.
var AllRefusalReasons = []string{
	RefusalBadRequest, RefusalStateless, RefusalOrigin, RefusalForbidden, RefusalUnknownKey, RefusalMethod, RefusalTimeout,
	RefusalTooLarge, RefusalMediaType, RefusalNoDestination, RefusalOverloaded, RefusalStorage, RefusalLoop, RefusalError,
}

// RefusalID identifies refusals that are logged and listed as one. It holds nothing that a client
// chooses freely, so there are few.
type RefusalID struct {
	Source string // site.SourceHTTP or site.SourceSMTP
	Server string // the name of the HTTP server; "" if unknown
	Site   string // the ID of the site
	Key    string // "" without a key, or with a key that does not exist
	Reason string
}
