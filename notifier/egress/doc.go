// Package egress decides which addresses may be reached and enforces that
// decision on every connection.
//
// A notification URL of a client must not lead into the operator's network.
// A [Policy] says which addresses are blocked. A [Pool] sends HTTP requests and
// opens other connections; it checks each address at the moment it is dialled,
// so that host names, DNS answers and redirects cannot bypass the policy. URLs
// that the operator wrote have no policy and may reach every address.
//
// A Pool sends short requests over plain HTTP with package internal/http1, and all
// others with the transport of net/http. Both put the same bytes on the wire.
package egress
