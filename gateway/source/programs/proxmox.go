package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "proxmox",
		Program: "Proxmox VE and Backup Server",
		Doc:     "https://pve.proxmox.com/pve-docs/chapter-notifications.html",
		Checked: "9.1.3",
		Has:     []string{"message", "severity?", "fields?"},
		Templates: source.Templates{
			Title: `{{ default "Proxmox" .title }}`,
			Body:  `{{ .message }}`,
			// Proxmox forwards mail to root, for example of smartd, with the severity unknown.
			Type: `{{ if eq .severity "unknown" }}warning{{ else }}{{ .severity }}{{ end }}`,
		},
	})
}
