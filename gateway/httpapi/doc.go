// Package httpapi answers the requests to the gateway. [RouteSpecs] is the table of routes; each
// resource has a file. An [API] belongs to one site. It knows pages only as functions
// ([PageFuncs]), and the server only as an [Environment].
package httpapi
