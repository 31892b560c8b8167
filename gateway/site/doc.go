// Package site knows who may send what where: the sites of a configuration,
// their keys, and who may use them.
package site
