package redisport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Place says where a door is reached, and how.
type Place struct {
	Address  string // host:port; port 0 takes any free one
	CertFile string // PEM; with KeyFile: TLS, and nothing else
	KeyFile  string
	Plain    bool // without TLS beyond this machine too
}

// Listen takes the place. Without TLS it must be on this machine, unless it is said that it need not: API keys and tokens
// would travel in the clear.
func Listen(ctx context.Context, p Place) (net.Listener, *tls.Config, error) {
	secure, err := p.secure()
	if err != nil {
		return nil, nil, err
	}
	address, err := net.ResolveTCPAddr("tcp", p.Address)
	if err != nil {
		return nil, nil, fmt.Errorf("the address of the Redis door, %q, cannot be used: write host:port, such as 127.0.0.1:6379 (%w)", p.Address, err)
	}
	if secure == nil && !p.Plain && !address.IP.IsLoopback() {
		return nil, nil, fmt.Errorf("the Redis door at %s would be reached from other machines without TLS, so that keys and tokens travel in the clear: "+
			"use 127.0.0.1:%d, or give --redis-tls-cert and --redis-tls-key, or say --redis-plain if the network is a trusted one", p.Address, address.Port)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address.String())
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, nil, fmt.Errorf("another program listens on %s, perhaps a Redis: choose another address with --redis-listen", p.Address)
	case err != nil:
		return nil, nil, fmt.Errorf("cannot listen on %s: %w; choose another address with --redis-listen", p.Address, err)
	}
	return listener, secure, nil
}

func (p Place) secure() (*tls.Config, error) {
	switch {
	case p.CertFile == "" && p.KeyFile == "":
		return nil, nil
	case p.CertFile == "" || p.KeyFile == "":
		return nil, errors.New("TLS at the Redis door takes both --redis-tls-cert and --redis-tls-key")
	}
	certificate, err := tls.LoadX509KeyPair(p.CertFile, p.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("the certificate of the Redis door cannot be used: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, nil
}
