"""Each test of the program that tidegate was made for has a counterpart here, by name."""

import ast
from pathlib import Path


SEEDS = [
    "test_agent_interrupt_called_on_disconnect",
    "test_agent_ref_none_still_cancels_task",
    "test_agent_task_cancelled_on_client_disconnect",
    "test_agent_task_not_cancelled_on_normal_completion",
    "test_already_done_task_not_cancelled_on_disconnect",
    "test_anthropic_eventless_sdk_assertion_normalized_to_empty_stream",
    "test_anthropic_malformed_tool_json_retries_with_buffered_tool_input",
    "test_anthropic_partial_tool_names_do_not_survive_into_next_attempt",
    "test_anthropic_stream_parser_valueerror_retries_before_delivery",
    "test_anthropic_stream_refreshes_activity_on_every_event",
    "test_bedrock_reasoning_models_resolve_floor",
    "test_broken_pipe_also_cancels_agent",
    "test_chat_parser_failure_closes_managed_stream",
    "test_chat_stream_closes_original_provider_resource",
    "test_codex_create_stream_fallback_refreshes_activity_on_every_event",
    "test_codex_interrupt_closes_stream_without_draining_provider",
    "test_codex_remote_protocol_error_retries_then_raises",
    "test_codex_stream_claims_writer_and_stops_when_superseded",
    "test_codex_text_delta_fires_callback",
    "test_consume_loop_stops_when_superseded_mid_stream",
    "test_current_writer_is_never_fenced",
    "test_deltas_fire_in_order",
    "test_direct_contexts_stream_on_the_wire_and_on_the_calling_thread",
    "test_endpoint_rejecting_stream_options_is_retried_without_it",
    "test_generic_anthropic_valueerror_still_propagates_without_stream_retry",
    "test_iam_denial_falls_back_inline_and_disables_streaming",
    "test_inline_stream_cross_thread_interrupt_aborts_promptly",
    "test_inline_stream_stale_detector_still_fires_from_monitor_thread",
    "test_interactive_platform_still_uses_the_worker_thread",
    "test_interrupt_before_first_attempt",
    "test_interrupt_prevents_stream_retry",
    "test_list_content_after_tool_call_is_normalized",
    "test_moa_interrupt_closes_stream_handle",
    "test_native_gemini_endpoint_omits_stream_options",
    "test_no_silent_retry_for_text_only_stall",
    "test_non_claiming_thread_is_not_a_writer",
    "test_non_json_sse_frame_stays_a_fatal_provider_error",
    "test_normal_retry_still_works_without_interrupt",
    "test_on_event_exception_is_swallowed",
    "test_on_event_fires_per_bedrock_event",
    "test_partial_tool_call_surfaces_warning",
    "test_pre_elevated_streak_aborts_before_streaming",
    "test_reasoning_callback_fires",
    "test_relay_finalizer_emits_joined_tool_arguments",
    "test_response_object_disables_streaming_and_returns_final_response",
    "test_should_use_direct_api_call_gate_is_unchanged",
    "test_silent_retry_exhausted_falls_back_to_stub",
    "test_silent_retry_recovers_tool_call",
    "test_sparse_delta_allows_missing_optional_fields",
    "test_sparse_tool_delta_allows_missing_nested_fields",
    "test_sse_connection_lost_retried_as_transient",
    "test_stale_stream_attempt_cannot_emit_late_chunks_after_retry",
    "test_stalled_stream_bumps_streak_and_aborts",
    "test_stream_not_supported_sets_flag_and_raises",
    "test_streamed_refusal_accumulated",
    "test_successful_stream_resets_streak",
    "test_superseded_writer_deltas_are_dropped",
    "test_text_only_response",
    "test_tool_argument_assembly_is_chunk_boundary_invariant",
    "test_tool_call_response",
    "test_zero_char_partial_stream_exhausted_raises_to_main_loop",
    "test_zero_char_partial_stream_retries_instead_of_empty_stub",
]


def test_every_seed_has_a_counterpart():
    trees = [ast.parse(each.read_text()) for each in Path(__file__).parent.glob("test_*.py")]
    named = {
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert len(SEEDS) == len({*SEEDS}) == 62
    assert {*SEEDS} - named == set()
