// Package console has the pages.
package console
