package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// What `up` keeps in its data directory beside PostgreSQL, readable by its own user alone.
const (
	tokenKeysFile = "hold_token_keys"
	apiKeyFile    = "api_key"
)

// keepsake reads a small secret of the data directory; empty if there is none yet.
func keepsake(dir, name string) (string, error) {
	content, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", elsewhere(fmt.Errorf("the data directory cannot be read: %w", err))
	}
	return strings.TrimSpace(string(content)), nil
}

// keep writes a small secret, complete or not at all.
func keep(dir, name, text string) (err error) {
	defer func() {
		if err != nil {
			err = elsewhere(fmt.Errorf("the data directory cannot be written: %w", err))
		}
	}()
	if err := os.MkdirAll(dir, 0o711); err != nil { //nolint:gosec // as PostgreSQL's data directory, which it may become later
		return err
	}
	file, err := os.CreateTemp(dir, name+"-*") // 0600
	if err != nil {
		return err
	}
	_, err = file.WriteString(text + "\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// keptTokenKeys are the hold token keys of the data directory, made at the first start.
func keptTokenKeys(dir string) (secret, error) {
	text, err := keepsake(dir, tokenKeysFile)
	if err != nil || text != "" {
		return secret(text), err
	}
	var key [32]byte
	rand.Read(key[:]) // never fails: the process ends if the system has no randomness
	text = "up:" + hex.EncodeToString(key[:])
	return secret(text), keep(dir, tokenKeysFile, text)
}
