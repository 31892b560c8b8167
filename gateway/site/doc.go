// Package site knows who may send what where. A [Site] has the keys, limits and rules of access of
// one handler of a configuration; [New] makes it of plain [Options]. A [Directory] has all sites of
// a configuration. [InFlight] bounds the messages under way in all of them, and [Waiting] the
// clients that wait. Saved keys and devices are found through functions ([Finder], [Receivers]),
// provided by other packages.
package site
