// Package services is the catalogue: one small file for each service that
// notification URLs can name. Importing it for its effect registers them all.
package services
