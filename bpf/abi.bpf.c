/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the C and the Go side share. This file names each such type and constant once, so that this object's type
 * information contains it; internal/abi is generated from that. This object is never loaded. */
#include "capture/record.h"
#include "core/bench.h"
#include "core/carry.h"
#include "core/events.h"
#include "core/forget.h"
#include "core/macs.h"
#include "core/record.h"
#include "core/segment.h"
#include "core/tables.h"
#include "meter/tables.h"
#include "overlay/answer.h"
#include "stage/guard.h"
#include "stage/loop.h"
#include "stage/wait.h"

struct catalogue {
	enum reason reason;
	enum reason_room reason_room;
	enum limits limits;
	enum port_flag port_flag;
	enum port_rule port_rule;
	enum vlan_mode vlan_mode;
	enum frame_mark frame_mark;
	enum team_policy team_policy;
	enum choice choice;
	enum frame_class frame_class;
	enum record_kind record_kind;
	enum segment_bits segment_bits;
	enum speaker_bits speaker_bits;
	enum tell_limits tell_limits;
	enum tell_kind tell_kind;
	enum loop_limits loop_limits;
	enum loop_sign loop_sign;
	enum meter_limits meter_limits;
	enum place_limits place_limits;
	enum bench_flows bench_flows;
	enum capture_limits capture_limits;
	enum overlay_limits overlay_limits;
	enum error_limits error_limits;
	enum tunnel_rule tunnel_rule;
	enum endpoint_flag endpoint_flag;
	enum location_source location_source;
	enum crossing_limits crossing_limits;
	enum neighbour_limits neighbour_limits;
	enum neighbour_count neighbour_count;
	enum binding_flag binding_flag;
	enum trunk_flag trunk_flag;
	enum capture_stage capture_stage;
	enum capture_flag capture_flag;
	struct tunnel tunnel;
	struct overlay_segment overlay_segment;
	struct segment_name segment_name;
	struct endpoint_name endpoint_name;
	struct endpoint endpoint;
	struct location_key location_key;
	struct location location;
	struct neighbour_speaker neighbour_speaker;
	struct overlay_trunk overlay_trunk;
	struct binding_key binding_key;
	struct binding binding;
	struct told_binding told_binding;
	struct neighbour_counts neighbour_counts;
	struct crossing_copy crossing_copy;
	struct crossing_record crossing_record;
	struct port port;
	struct vlan_set vlan_set;
	struct team team;
	struct segment_chunk segment_chunk;
	struct group group;
	struct member_chunk member_chunk;
	struct control control;
	struct owner_bucket owner_bucket;
	struct guard_address guard_address;
	struct mac_key mac_key;
	struct learned learned;
	struct carried_mac carried_mac;
	struct forgotten_mac forgotten_mac;
	struct own_mark own_mark;
	struct speaker speaker;
	struct storm_bucket storm_bucket;
	struct counters counters;
	struct rare_counters rare_counters;
	struct port_name port_name;
	struct switch_name switch_name;
	struct record_control record_control;
	struct record record;
	struct tell tell;
	struct told told;
	struct told_probe told_probe;
	struct told_claim told_claim;
	struct flow_key flow_key;
	struct wide_flow_key wide_flow_key;
	struct flow flow;
	struct flow_place flow_place;
	struct meter_control meter_control;
	struct meter_point meter_point;
	struct flow_room flow_room;
	struct capture capture;
	struct capture_control capture_control;
	struct capture_counts capture_counts;
	struct capture_outer capture_outer;
	struct capture_record capture_record;
	struct filter_instruction filter_instruction;
	struct bench_control bench_control;
	struct bench_frame bench_frame;
} catalogue;
