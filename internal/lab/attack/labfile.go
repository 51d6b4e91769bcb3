package attack

// The nodes: the attackers and one victim are on the first host.
const (
	attacked      = "esx1"
	client        = "va"
	server        = "vb"
	serverAddress = "192.0.2.2"
	members       = 2 // of the LAG
)

func hosts() []string { return []string{attacked, "esx2"} }

// labFile is the lab: two hosts, connected by two cables that both sides bundle.
const labFile = `
name: hostile-guest
title: a guest speaks the protocols of the link
hosts:
  - name: esx1
    config:
      host: {macTable: 4096}
      switches:
        - name: lab
          uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: eno2}]
          lags: [{name: lag1, uplinks: [uplink1, uplink2], timeout: slow}]
          discovery: {lldp: both}
          portGroups:
            - {name: victims, vlan: {access: 100}}
            - name: guarded
              vlan: {access: 100}
              security: {addressGuard: {enabled: true}, dhcpServer: reject, routerAdvertisements: reject}
            - {name: access, vlan: {access: 300}}
            - {name: none}
            - {name: trunk, vlan: {trunk: ["0-4094"]}}
            - name: nested
              vlan: {access: 100}
              security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 2048, limitPolicy: drop}}
            - name: many
              vlan: {access: 301}
              security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 4096, limitPolicy: drop}}
            - name: many-passing
              vlan: {access: 301}
              security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 4096, limitPolicy: allow}}
            - name: few
              vlan: {access: 301}
              security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 64, limitPolicy: drop}}
            - {name: looped, vlan: {access: 302}, security: {forgedTransmits: accept}}
            - name: stormy
              vlan: {access: 303}
              security: {forgedTransmits: accept, loopDetection: false}
              stormControl: {broadcast: 1000, multicast: 1000, unknownUnicast: 1000}
            - {name: loose, vlan: {access: 304}, security: {forgedTransmits: accept, loopDetection: false}}
      ports:
        - {name: va, switch: lab, portGroup: victims, device: vm-va, mac: "02:00:00:00:01:01"}
        - name: guarded
          switch: lab
          portGroup: guarded
          device: vm-guarded
          mac: "02:00:00:00:06:01"
          security: {addressGuard: {addresses: [192.0.2.66]}}
        - {name: unguarded, switch: lab, portGroup: victims, device: vm-unguarded, mac: "02:00:00:00:06:02"}
        - {name: access, switch: lab, portGroup: access, device: vm-access, mac: "02:00:00:00:03:01"}
        - {name: none, switch: lab, portGroup: none, device: vm-none, mac: "02:00:00:00:03:02"}
        - {name: trunk, switch: lab, portGroup: trunk, device: vm-trunk, mac: "02:00:00:00:03:03"}
        - {name: nest, switch: lab, portGroup: nested, device: vm-nest}
        - {name: starvation, switch: lab, portGroup: many, device: vm-starve, mac: "02:00:00:00:04:01"}
        - {name: starvation-passing, switch: lab, portGroup: many-passing, device: vm-passing, mac: "02:00:00:00:04:02"}
        - {name: starvation-limit, switch: lab, portGroup: few, device: vm-limit, mac: "02:00:00:00:04:03"}
        - {name: looped, switch: lab, portGroup: looped, device: vm-looped, mac: "02:00:00:00:05:01"}
        - {name: looped2, switch: lab, portGroup: looped, device: vm-looped2, mac: "02:00:00:00:05:02"}
        - {name: stormy, switch: lab, portGroup: stormy, device: vm-stormy, mac: "02:00:00:00:05:03"}
        - {name: stormy2, switch: lab, portGroup: stormy, device: vm-stormy2, mac: "02:00:00:00:05:04"}
        - {name: loose, switch: lab, portGroup: loose, device: vm-loose, mac: "02:00:00:00:05:05"}
        - {name: loose2, switch: lab, portGroup: loose, device: vm-loose2, mac: "02:00:00:00:05:06"}
  - name: esx2
    config:
      switches:
        - name: lab
          uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: eno2}]
          lags: [{name: lag1, uplinks: [uplink1, uplink2], timeout: slow}]
          discovery: {lldp: both}
          portGroups:
            - {name: victims, vlan: {access: 100}}
      ports:
        - {name: vb, switch: lab, portGroup: victims, device: vm-vb, mac: "02:00:00:00:02:01"}
vms:
  - {name: va, host: esx1, addresses: [192.0.2.1/24, "2001:db8::1/64"]}
  - {name: guarded, host: esx1}
  - {name: unguarded, host: esx1}
  - {name: access, host: esx1}
  - {name: none, host: esx1}
  - {name: trunk, host: esx1}
  - {name: nest, host: esx1}
  - {name: starvation, host: esx1}
  - {name: starvation-passing, host: esx1}
  - {name: starvation-limit, host: esx1}
  - {name: vb, host: esx2, addresses: [192.0.2.2/24, "2001:db8::2/64"]}
routers:
  - {name: looped, interfaces: [{device: eth0, host: esx1, port: looped}, {device: eth1, host: esx1, port: looped2}]}
  - {name: stormy, interfaces: [{device: eth0, host: esx1, port: stormy}, {device: eth1, host: esx1, port: stormy2}]}
  - {name: loose, interfaces: [{device: eth0, host: esx1, port: loose}, {device: eth1, host: esx1, port: loose2}]}
links:
  - {a: esx1/eno1, b: esx2/eno1}
  - {a: esx1/eno2, b: esx2/eno2}
`
