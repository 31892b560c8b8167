package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp"
	savedpkg "github.com/caddy-notify/caddy-notify/gateway/saved"
)

// saveKeys saves the keys of an Apprise API in the storage of --config.
func (f *migrateFlags) saveKeys(cmd *cobra.Command, m *migration, saved []savedConfig) error {
	config, err := caddyhttp.ReadConfig(cmd.InOrStdin(), f.config, f.adapter)
	if err != nil {
		return err
	}
	keys := make([]savedpkg.KeyText, len(saved))
	for i, s := range saved {
		keys[i] = savedpkg.KeyText{Name: s.key, Format: s.format, Text: string(s.text)}
	}
	reports, err := config.SaveKeys(cmd.Context(), keys, savedpkg.SaveOptions{Space: f.space, DefaultTag: f.defaultTag, Replace: f.force})
	if err != nil {
		return err
	}
	n := 0 // how many keys are saved
	for i, r := range reports {
		if m.addSaved(keys[i].Name, r) {
			n++
		}
	}
	if n := len(m.defaultURLs); n > 0 {
		m.skip("APPRISE_STATELESS_URLS: write %s into default_urls of the Caddyfile", count(n, "URL"))
		m.defaultURLs = nil
	}
	if m.login != nil {
		m.skip("the login of the Apprise API: put basic_auth into the site before notify, or anyone who reaches it can use the keys")
	}
	if len(m.env) > 0 {
		m.note("the variables of the Apprise API are not moved with --save; without it, the command writes a Caddyfile with the settings that they stand for")
	}
	return m.report(cmd.OutOrStdout(), fmt.Sprintf("Saved: %s in the storage of %s", count(n, "key"), f.config))
}

// addSaved adds the report about a key to that of the migration, and reports
// whether the key is saved.
func (m *migration) addSaved(name string, r savedpkg.SavedKeyReport) (saved bool) {
	for _, w := range r.Warnings {
		m.note("key %s, %s", name, w)
	}
	for _, mistake := range r.Mistakes {
		m.skip("key %s, %s", name, mistake)
	}
	if r.Refused != nil {
		m.skip("%s: %v", keyLabel(name), r.Refused)
		return false
	}
	m.moved = append(m.moved, fmt.Sprintf("key %s: %s", name, count(r.URLs, "URL")))
	if r.Rewritten {
		m.note("key %s: it is saved as text without what cannot be used, so its comments and groups are gone", name)
	}
	return true
}
