package sandbox

import "path/filepath"

// layout is where things are in a data directory.
type layout string

func (l layout) path(elements ...string) string {
	return filepath.Join(append([]string{string(l)}, elements...)...)
}

func (l layout) pki(file string) string         { return l.path("pki", file) }
func (l layout) log(component string) string    { return l.path("logs", component+".log") }
func (l layout) kubeconfig() string             { return l.path("kubeconfig") }
func (l layout) client(component string) string { return l.path("clients", component+".kubeconfig") }
func (l layout) etcdData() string               { return l.path("etcd") }
func (l layout) ports() string                  { return l.path("ports.json") }
func (l layout) status() string                 { return l.path("status.json") }
func (l layout) options() string                { return l.path("options.json") }
func (l layout) lock() string                   { return l.path("supervisor.lock") }
