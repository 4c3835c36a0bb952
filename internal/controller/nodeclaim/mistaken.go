package nodeclaim

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// clocksApart is the largest expected difference between the clocks of the cloud and of the API server.
const clocksApart = time.Minute

// mistakenClaims returns the claims whose status.providerID names a machine that was not launched for them, keyed by
// the provider ID of the machine that was. Three facts identify such a claim: the record of its own machine names the
// claim, no claim shows that machine, and the record of the machine that the claim shows does not name the claim.
// Only a manual edit creates such a claim. A second machine of a claim that shows the first one is a leak and is not
// included.
func mistakenClaims(machines []cloud.Machine, claims []karpv1.NodeClaim) map[string]*karpv1.NodeClaim {
	shown, byName := map[string]bool{}, make(map[string]*karpv1.NodeClaim, len(claims))
	for i := range claims {
		shown[claims[i].Status.ProviderID] = true
		byName[claims[i].Name] = &claims[i]
	}
	of := make(map[string]string, len(machines))
	for _, m := range machines {
		of[m.ProviderID] = m.Claim
	}
	mistaken := map[string]*karpv1.NodeClaim{}
	for _, m := range machines {
		claim := byName[m.Claim]
		if m.Terminating || claim == nil || claim.Status.ProviderID == "" || shown[m.ProviderID] || of[claim.Status.ProviderID] == claim.Name {
			continue
		}
		if m.Created.Add(clocksApart).Before(claim.CreationTimestamp.Time) {
			continue // launched for an earlier claim of the same name
		}
		mistaken[m.ProviderID] = claim
	}
	return mistaken
}

// reportMistaken reports claims with the provider ID of another machine, and returns those whose own node reports.
// These are not deleted because of the cloud's response about the machine that they name.
func (c *Collector) reportMistaken(ctx context.Context, mistaken map[string]*karpv1.NodeClaim) map[types.UID]bool {
	kept := map[types.UID]bool{}
	for id, claim := range mistaken {
		why := fmt.Sprintf("status.providerID: is %s, but machine %s was launched for this claim; the machine is kept. Restore the provider ID: "+
			"kubectl patch nodeclaim %s --subresource=status --type=merge -p '{\"status\":{\"providerID\":\"%s\"}}'",
			claim.Status.ProviderID, id, claim.Name, id)
		c.Recorder.Emit(telemetry.SetAside(claim, why))
		ctrl.LoggerFrom(ctx).Info("kept a machine whose claim names another machine", "providerID", id, "nodeClaim",
			claim.Name, "shown", claim.Status.ProviderID)
		nodes, err := nodesOf(ctx, c.Client, id)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "looking for the node of a machine", "providerID", id)
		}
		for i := range nodes {
			if karpv1.OwnsNode(claim, &nodes[i]) {
				kept[claim.UID] = true
			}
		}
		kept[claim.UID] = kept[claim.UID] || err != nil
	}
	return kept
}
