package migrate

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/words"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
)

// saveKeys saves the keys of an Apprise API in the storage of --config.
func (f *flags) saveKeys(cmd *cobra.Command, s *settings, configs []savedConfig, defaultURLs int) error {
	config, err := caddyhttp.ReadConfig(cmd.InOrStdin(), f.config, f.adapter)
	if err != nil {
		return err
	}
	keys := make([]saved.KeyText, len(configs))
	for i, c := range configs {
		keys[i] = saved.KeyText{Name: c.key, Format: c.format, Text: string(c.text)}
	}
	reports, err := config.SaveKeys(cmd.Context(), f.space, keys, saved.ImportOptions{DefaultTag: f.defaultTag, Replace: f.force})
	if err != nil {
		return err
	}
	n := 0 // how many keys are saved
	for i, r := range reports {
		if s.report.addSaved(keys[i].Name, r) {
			n++
		}
	}
	if defaultURLs > 0 {
		s.report.skip("APPRISE_STATELESS_URLS: write %s into default_urls of the Caddyfile", words.Count(defaultURLs, "URL"))
	}
	if s.login != nil {
		s.report.skip("the login of the Apprise API: put basic_auth into the site before notify, or anyone who reaches it can use the keys")
	}
	if len(s.env) > 0 {
		s.report.note("the variables of the Apprise API are not moved with --save; " +
			"without it, the command writes a Caddyfile with the settings that they stand for")
	}
	return s.report.write(cmd.OutOrStdout(), fmt.Sprintf("Saved: %s in the storage of %s", words.Count(n, "key"), f.config))
}

// addSaved adds what was saved of a key, and reports
// whether the key is saved.
func (r *report) addSaved(name string, k saved.KeyReport) (ok bool) {
	for _, w := range k.Warnings {
		r.note("key %s, %s", name, w)
	}
	for _, mistake := range k.Mistakes {
		r.skip("key %s, %s", name, mistake)
	}
	if k.Refused != nil {
		r.skip("%s: %v", keyLabel(name), k.Refused)
		return false
	}
	r.moved = append(r.moved, fmt.Sprintf("key %s: %s", name, words.Count(k.URLs, "URL")))
	if k.Rewritten {
		r.note("key %s: it is saved as text without what cannot be used, so its comments and groups are gone", name)
	}
	return true
}
