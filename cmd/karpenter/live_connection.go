package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karpenter-go/karpenter/internal/cli"
	"github.com/karpenter-go/karpenter/internal/wire"
)

// connection selects the cluster, with kubectl's flags.
type connection struct {
	kubeconfig, context string
	// namespace is the value of --namespace, "" for the namespace of the kubeconfig's context.
	namespace string
}

func (c *connection) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig file of the cluster (default: as kubectl finds it: KUBECONFIG, the home directory; else the cluster that the program runs in)")
	flags.StringVar(&c.context, "context", "", "context of the kubeconfig (default: its current context)")
}

// addNamespace adds the flag -n with the usage text.
func (c *connection) addNamespace(flags *pflag.FlagSet, usage string) {
	flags.StringVarP(&c.namespace, "namespace", "n", "", usage)
}

func (c *connection) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.context, Context: clientcmdapi.Context{Namespace: c.namespace}}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// config returns the connection to the cluster.
func (c *connection) config() (*rest.Config, error) {
	config, err := c.loader().ClientConfig()
	if clientcmd.IsEmptyConfig(err) || errors.Is(err, rest.ErrNotInCluster) {
		return nil, cli.UsageErrorf("no cluster: give --kubeconfig FILE or set KUBECONFIG, or run inside a cluster")
	}
	if err != nil {
		return nil, cli.UsageErrorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 100, 200
	config.UserAgent = "karpenter/" + programVersion()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return wire.Transport(next, func(f wire.Fault) { fmt.Fprintln(os.Stderr, "karpenter: cannot read", f) })
	})
	return config, nil
}

// home is the namespace of objects without one: --namespace, else that of the context, else default.
func (c *connection) home() string {
	if namespace, _, err := c.loader().Namespace(); err == nil && namespace != "" {
		return namespace
	}
	return corev1.NamespaceDefault
}
