package postgres

import (
	"errors"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// readDSN reads a connection string in either of the forms of libpq. Parameters that
// begin with pool_ are for pgxpool.
func readDSN(dsn string) (*pgxpool.Config, error) {
	isURL := strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
	if !isURL && (strings.Contains(dsn, "://") || !strings.Contains(dsn, "=")) {
		return nil, errors.New("reading the connection string: write postgres://user:password@host/database, or pairs such as " +
			"host=db.example.com")
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, dsnError(err)
	}
	given, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, dsnError(err)
	}
	if given.RuntimeParams["pool_max_conns"] == "" {
		config.MaxConns = defaultConns
	}
	if config.MaxConns < 2 {
		return nil, errors.New("reading the connection string: pool_max_conns must be a number from 2 up")
	}
	if params := config.ConnConfig.RuntimeParams; params["application_name"] == "" {
		params["application_name"] = "caddy-notify"
	}
	return config, nil
}

// spacedPassword is a password in a connection string with spaces around the equals sign,
// where pgconn does not recognize it.
var spacedPassword = regexp.MustCompile(`(?i)(password\s*=\s*)('(?:[^'\\]|\\.)*'?|[^\s` + "`" + `]+)`)

// dsnError returns an error of pgconn about a connection string without the password.
func dsnError(err error) error {
	return errors.New("reading the connection string: " + spacedPassword.ReplaceAllString(err.Error(), "${1}xxxxx"))
}
