// Package migrate is the command `caddy notify migrate`, which moves the keys and settings of
// an Apprise API into a Caddyfile, or its keys into the keys that a site saves.
//
// It works in stages, which tell in one report what is different and what cannot be moved:
//
//	environment   the variables of the Apprise API
//	settings      what they stand for in a Caddyfile
//	reader        the saved configurations, from a folder or a server
//	converter     the keys and notification URLs of the configurations
//	migratedFiles the files to write; or saveKeys, with --save
package migrate
