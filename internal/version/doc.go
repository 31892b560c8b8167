// Package version has the version of this module.
package version
