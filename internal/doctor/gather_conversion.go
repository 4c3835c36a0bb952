package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// trials are objects of v1beta1 that say as little as their definitions allow, by the definition.
var trials = map[string]string{
	"nodepools.karpenter.sh": `{"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool",
		"spec": {"template": {"spec": {"nodeClassRef": {"name": "none"}, "requirements": []}}}}`,
	"nodeclaims.karpenter.sh": `{"apiVersion": "karpenter.sh/v1beta1", "kind": "NodeClaim",
		"spec": {"nodeClassRef": {"name": "none"}, "requirements": []}}`,
	"ec2nodeclasses.karpenter.k8s.aws": `{"apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass",
		"spec": {"amiFamily": "AL2023", "role": "none", "subnetSelectorTerms": [{"id": "subnet-0"}], "securityGroupSelectorTerms": [{"id": "sg-0"}]}}`,
}

// longestTrial is how long the API server may try to reach a webhook; it would itself for half a minute.
const longestTrial = 10 * time.Second

// noConversion begins what the API server answers when its webhook does not convert (apiextensions-apiserver,
// pkg/apiserver/conversion/webhook_converter.go).
const noConversion = "conversion webhook for "

// conversions asks the API server to convert, where a controller has said that it does: a creation that is tried only (dry
// run) goes as far as the webhook. Lists would not do: one of nothing asks nobody, and others may come from a cache.
func (s *Source) conversions(ctx context.Context, f *Facts) {
	f.Unanswered = map[string]string{}
	for i := range f.Installed {
		d := &f.Installed[i]
		if trial := trials[d.Name]; trial != "" && saidToConvert(d) {
			if answer := s.try(ctx, trial); answer != "" {
				f.Unanswered[d.Name] = answer
			}
		}
	}
}

// saidToConvert says whether a controller has written itself into the definition.
func saidToConvert(d *apiextensionsv1.CustomResourceDefinition) bool {
	c := d.Spec.Conversion
	return c != nil && c.Strategy == apiextensionsv1.WebhookConverter && c.Webhook != nil && c.Webhook.ClientConfig != nil &&
		len(c.Webhook.ClientConfig.CABundle) > 0 && !isSwitchedOff(*d)
}

// try is what the API server says about the webhook; "" if that answers, and if something else is in the way of asking it.
func (s *Source) try(ctx context.Context, trial string) string {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(trial), object); err != nil {
		return ""
	}
	object.SetGenerateName("karpenter-doctor-")
	within, stop := context.WithTimeout(ctx, longestTrial)
	defer stop()
	err := s.Client.Create(within, object, client.DryRunAll)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return "it has no answer from the webhook after " + longestTrial.String()
	}
	if at := strings.Index(err.Error(), noConversion); at >= 0 {
		return err.Error()[at:]
	}
	return ""
}
