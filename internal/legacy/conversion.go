package legacy

import (
	"crypto/x509"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karpenter-go/karpenter/api"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/legacy/webhook"
)

// Webhook is where the API server reaches the conversion webhook.
type Webhook struct {
	// Namespace and Service are the Service that leads here, at ServicePort (0: Port). Without a Service, nothing is
	// converted here.
	Namespace, Service string
	ServicePort        int
	// Port is the port here; 0 switches the webhook off.
	Port int
	// SecretNamespace is the namespace of the Secret with the certificate.
	SecretNamespace string
	// ClientCA, if set, holds the authorities of the clients that are answered.
	ClientCA *x509.CertPool
}

// addConversion serves older versions of the API, if there is a Service through which the API server reaches this
// process. Outside a cluster there is none. The definitions then keep the conversion settings of another process,
// unless the webhook is switched off, which is written to the definitions.
func (v *Versions) addConversion() error {
	hook, log := v.Webhook, v.Manager.GetLogger().WithName("conversion")
	if hook.Service == "" && hook.Port != 0 {
		log.Info("v1beta1 of NodePool, NodeClaim and EC2NodeClass is not converted here: " +
			"--karpenter-service does not name the Service by which the API server would find the webhook. v1 is not concerned")
		return nil
	}
	scheme, err := api.NewScheme()
	if err != nil {
		return err
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	api, err := client.NewWithWatch(v.API, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("setting up the conversion webhook: %w", err)
	}
	server := &webhook.Server{
		Client: api, Namespace: hook.Namespace, Service: hook.Service, ServicePort: hook.ServicePort, Port: hook.Port,
		SecretNamespace: hook.SecretNamespace, ClientCA: hook.ClientCA, Clock: v.Clock, Log: log,
	}
	// The API server may call any replica.
	if err := v.Manager.Add(controller.BeforeCaches{Run: server.Start}); err != nil || hook.Port == 0 {
		return err
	}
	storage := &webhook.Storage{Client: api, Classes: !v.Kwok, Clock: v.Clock, Log: log}
	return v.Manager.Add(manager.RunnableFunc(storage.Start))
}
