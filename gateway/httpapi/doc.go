// Package httpapi answers the requests to the gateway: one table of routes,
// and the resources behind it.
package httpapi
