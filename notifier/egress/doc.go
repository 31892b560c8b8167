// Package egress decides which addresses may be reached and enforces that
// decision on every connection.
//
// A notification URL of a client must not lead into the operator's network.
// A [Policy] says which addresses are blocked. A [Pool] sends HTTP requests and
// opens other connections; it checks each address at the moment it is dialled,
// so that host names, DNS answers and redirects cannot bypass the policy. URLs
// that the operator wrote have no policy and may reach every address.
package egress
