package awssim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// adminPath is the path of the admin API, which makes the methods of Cloud available to other processes. A POST of JSON
// to /_admin/<verb> calls a method and returns JSON. A GET of instances, pools, subnets, reservations, calls, ignored,
// served or queue returns the state. Errors have status 400 and a text.
const adminPath = "/_admin/"

// adminRequest has the fields of all verbs.
type adminRequest struct {
	Fault                      // for fault; its code and body also for reject and send, its delay for shift
	ID                string   `json:"id"`
	IDs               []string `json:"ids"` // for interrupt, rebalance, terminate
	InstanceType      string   `json:"instanceType"`
	Zone              string   `json:"zone"`
	CapacityType      string   `json:"capacityType"`
	Left              int      `json:"left"`
	Number            int      `json:"number"`
	Event             string   `json:"event"`
	At                string   `json:"at"` // RFC 3339
	Check             string   `json:"check"`
	How               string   `json:"how"`
	AccessKey         string   `json:"accessKey"`
	Family            string   `json:"family"`
	Version           string   `json:"version"`
	SubnetID          string   `json:"subnetId"`
	ClusterEndpoint   string   `json:"clusterEndpoint"`
	ClusterCA         string   `json:"clusterCA"`
	KubernetesVersion string   `json:"kubernetesVersion"`
	Condition         string   `json:"condition"` // for policy: ec2:Encrypted, ec2:MetadataHttpTokens or ec2:InstanceType
	Values            []string `json:"values"`
	// Reservation is for reserve; its type, zone and size also as instanceType, zone and number.
	Reservation CapacityReservation `json:"reservation"`

	Group PlacementGroup `json:"group"` // for placement-group
	// Reserved is for reserve-instances, Plan for buy-savings-plan.
	Reserved ReservedInstances `json:"reserved"`
	Plan     SavingsPlan       `json:"plan"`
}

// adminVerbs are the verbs for POST.
var adminVerbs = map[string]func(*Cloud, adminRequest) (any, error){
	"drain": func(c *Cloud, r adminRequest) (any, error) {
		return nil, c.Drain(r.InstanceType, r.Zone, r.CapacityType, r.Left)
	},
	"refill": func(c *Cloud, r adminRequest) (any, error) {
		return nil, c.Refill(r.InstanceType, r.Zone, r.CapacityType)
	},
	"reject": func(c *Cloud, r adminRequest) (any, error) {
		return nil, c.Reject(r.InstanceType, r.Zone, r.CapacityType, Refusal{r.Code, r.Body})
	},
	"fault": func(c *Cloud, r adminRequest) (any, error) {
		id, err := c.Inject(r.Fault)
		return map[string]int{"fault": id}, err
	},
	"clear":     func(c *Cloud, r adminRequest) (any, error) { c.Clear(r.Number); return nil, nil },
	"interrupt": func(c *Cloud, r adminRequest) (any, error) { return nil, r.each(c.Interrupt) },
	"rebalance": func(c *Cloud, r adminRequest) (any, error) { return nil, r.each(c.Rebalance) },
	"terminate": func(c *Cloud, r adminRequest) (any, error) { return nil, r.each(c.Terminate) },
	"schedule": func(c *Cloud, r adminRequest) (any, error) {
		at, err := time.Parse(time.RFC3339, r.At)
		if err != nil {
			return nil, fmt.Errorf("at %q: must be a time as 2026-11-20T12:00:00Z", r.At)
		}
		return nil, c.Schedule(r.ID, r.Event, at)
	},
	"end-schedule": func(c *Cloud, r adminRequest) (any, error) { return nil, c.EndSchedule(r.ID, r.How) },
	"impair":       func(c *Cloud, r adminRequest) (any, error) { return nil, c.Impair(r.ID, r.Check) },
	"spoil":        func(c *Cloud, r adminRequest) (any, error) { return nil, c.Spoil(Spoilage(r.How)) },
	"send":         func(c *Cloud, r adminRequest) (any, error) { c.Send(r.Body); return nil, nil },
	"expire":       func(c *Cloud, r adminRequest) (any, error) { c.ExpireCredentials(r.AccessKey); return nil, nil },
	"renew":        func(c *Cloud, r adminRequest) (any, error) { c.RenewCredentials(r.AccessKey); return nil, nil },
	"release": func(c *Cloud, r adminRequest) (any, error) {
		ids, err := c.ReleaseImages(r.Family, r.Version)
		return map[string][]string{"images": ids}, err
	},
	"deprecate": func(c *Cloud, r adminRequest) (any, error) { return nil, c.DeprecateImage(r.ID) },
	"policy":    func(c *Cloud, r adminRequest) (any, error) { return nil, c.DenyUnless(r.Condition, r.Values...) },
	"reserve":   reserve,
	"reserve-instances": func(c *Cloud, r adminRequest) (any, error) {
		return map[string]string{"reservedInstances": c.AddReservedInstances(r.Reserved)}, nil
	},
	"buy-savings-plan": func(c *Cloud, r adminRequest) (any, error) {
		return map[string]string{"savingsPlan": c.AddSavingsPlan(r.Plan)}, nil
	},
	"retire": func(c *Cloud, r adminRequest) (any, error) { return nil, c.RetireReservedInstances(r.ID) },
	"placement-group": func(c *Cloud, r adminRequest) (any, error) {
		return map[string]string{"placementGroup": c.AddPlacementGroup(r.Group)}, nil
	},
	"delete-placement-group": func(c *Cloud, r adminRequest) (any, error) { return nil, c.DeletePlacementGroup(r.ID) },
	"shift": func(c *Cloud, r adminRequest) (any, error) {
		id, err := c.StartShift(r.Zone, ShiftKind(r.How), r.Delay)
		return map[string]string{"shift": id}, err
	},
	"end-shift":   func(c *Cloud, r adminRequest) (any, error) { c.EndShift(r.ID); return nil, nil },
	"manage":      func(c *Cloud, r adminRequest) (any, error) { c.ManageCluster(r.How != "no"); return nil, nil },
	"reclaim":     func(c *Cloud, r adminRequest) (any, error) { return nil, c.Reclaim(r.ID, r.Left) },
	"cancel":      func(c *Cloud, r adminRequest) (any, error) { return nil, c.CancelReservation(r.ID) },
	"addresses":   func(c *Cloud, r adminRequest) (any, error) { return nil, c.TakeAddresses(r.SubnetID, r.Number) },
	"fail-boots":  func(c *Cloud, r adminRequest) (any, error) { c.FailBoots(r.Number); return nil, nil },
	"reset-calls": func(c *Cloud, _ adminRequest) (any, error) { c.ResetCalls(); return nil, nil },
	"cluster": func(c *Cloud, r adminRequest) (any, error) {
		c.SetCluster(Cluster{Endpoint: r.ClusterEndpoint, CA: r.ClusterCA, Version: r.KubernetesVersion})
		return nil, nil
	},
}

func reserve(c *Cloud, r adminRequest) (any, error) {
	defaultTo(&r.Reservation.Type, r.InstanceType)
	defaultTo(&r.Reservation.Zone, r.Zone)
	if r.Reservation.Total == 0 {
		r.Reservation.Total = r.Number
	}
	return map[string]string{"reservation": c.AddReservation(r.Reservation)}, nil
}

// each calls do for id and all ids.
func (r adminRequest) each(do func(string) error) error {
	ids := r.IDs
	if r.ID != "" {
		ids = append(ids, r.ID)
	}
	for _, id := range ids {
		if err := do(id); err != nil {
			return err
		}
	}
	return nil
}

// callTotal is an entry of the view "calls".
type callTotal struct {
	CallCount
	Count int `json:"count"`
}

// adminViews are the views for GET.
var adminViews = map[string]func(*Cloud, *http.Request) any{
	"instances":    func(c *Cloud, _ *http.Request) any { return c.Instances() },
	"subnets":      func(c *Cloud, _ *http.Request) any { return c.Subnets() },
	"pools":        func(c *Cloud, r *http.Request) any { return c.Pools(r.URL.Query()["instanceType"]...) },
	"reservations": func(c *Cloud, _ *http.Request) any { return c.Reservations() },
	"ignored":      func(c *Cloud, _ *http.Request) any { return c.Ignored() },
	"served":       func(*Cloud, *http.Request) any { return ServedCalls() },
	"queue":        func(c *Cloud, _ *http.Request) any { return map[string]int{"messages": c.Queued()} },
	"calls": func(c *Cloud, _ *http.Request) any {
		byName := map[string]callTotal{}
		for call, n := range c.Calls() {
			byName[call.Service+" "+call.Action+" "+call.Code] = callTotal{call, n}
		}
		var totals []callTotal
		for _, name := range sortedKeys(byName) {
			totals = append(totals, byName[name])
		}
		return totals
	},
}

func (c *Cloud) serveAdmin(w http.ResponseWriter, hr *http.Request) {
	name := strings.TrimPrefix(hr.URL.Path, adminPath)
	view, verb := adminViews[name], adminVerbs[name]
	switch {
	case hr.Method == http.MethodGet && view != nil:
		adminAnswer(w, view(c, hr))
	case hr.Method == http.MethodPost && verb != nil:
		var r adminRequest
		decoder := json.NewDecoder(hr.Body)
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&r); err != nil {
			http.Error(w, "reading the request: "+err.Error(), http.StatusBadRequest)
			return
		}
		out, err := verb(c, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		adminAnswer(w, out)
	default:
		http.Error(w, fmt.Sprintf("%s %s: GET one of %v, POST one of %v", hr.Method, hr.URL.Path, sortedKeys(adminViews),
			sortedKeys(adminVerbs)), http.StatusNotFound)
	}
}

func adminAnswer(w http.ResponseWriter, out any) {
	if out == nil {
		out = struct{}{}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}
