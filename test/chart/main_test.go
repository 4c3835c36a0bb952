package chart

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if built.folder != nil {
		_ = built.folder.Remove()
	}
	os.Exit(code)
}
